"""How many slices `training.accumulation: auto` takes."""

import dataclasses
import json
import os

import pytest
import tensorflow as tf
from said import listen

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import find_config
from keras_bert.config.training import TrainingConfig
from keras_bert.core.errors import UserError
from keras_bert.core.settings import from_mapping
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import config_from_mapping
from keras_bert.models.recurrent.kind import RecurrentConfig
from keras_bert.models.sizes import encoder_parts, total
from keras_bert.training import accumulation
from keras_bert.training.accumulation import (
    BatchShape,
    Companion,
    choose_accumulation,
    memory_of_a_process,
    step_memory,
)
from keras_bert.training.run_folder import RunFolder

GIB = 2**30
PAPER = (BatchShape(256, 128, 20), BatchShape(256, 512, 77))  # The two phases of BERT's pretraining.
# Measured by tools/measure_memory.py, in GiB: (model, length, batch) to the peaks without and with recomputation.
PEAKS = {
    ("tiny", 128, 128): (2.05, 1.92),
    ("tiny", 512, 64): (3.28, 3.19),
    ("mini", 128, 64): (2.25, 1.54),
    ("mini", 512, 32): (4.18, 2.16),
    ("base", 128, 4): (3.46, 2.95),
    ("base", 512, 4): (6.06, 3.39),
    ("base", 512, 16): (15.74, 5.08),
}
# The same with a vocabulary of 8,192: (model, batch, tokens that are read, tokens that are written).
PEAKS_OF_DECODERS = {
    ("bart-mini", 32, 128, 128): 2.63,
    ("bart-mini", 8, 512, 512): 3.38,
    ("t5-mini", 32, 128, 27): 1.62,
    ("t5-mini", 8, 512, 103): 1.91,
}
# Those without recomputation, by --teacher base: (model, length, batch, whether logits are compared).
PEAKS_WITH_A_TEACHER = {
    ("mini", 128, 64, False): 3.35,
    ("mini", 128, 64, True): 3.54,
    ("tiny", 512, 16, False): 2.48,
    ("tiny", 512, 16, True): 2.89,
}
GATED_AND_NOT = ("roberta-prelayernorm", "prelayernorm-glu")


def model(name):
    return BertConfig.from_file(find_config("models", name))


@pytest.fixture
def choose(monkeypatch):
    """Function (GiB of memory, …) -> (the slices that are chosen, what is said)."""

    def choose(memory, *batches, strategy=None, training=None, run=None, size="base", companions=()):
        monkeypatch.setattr(accumulation, "memory_limit", lambda: memory and memory * GIB)
        strategy, said = strategy or tf.distribute.OneDeviceStrategy("CPU:0"), listen()
        slices = choose_accumulation(
            training or TrainingConfig(),
            run or RunFolder("unused"),
            strategy,
            model(size),
            batches,
            companions=companions,
        )
        return slices, said

    return choose


@pytest.mark.parametrize(("name", "length", "batch"), PEAKS)
def test_the_estimate_is_near_what_was_measured(name, length, batch):
    """If it is too low, the system kills a run that should fit; the fifth that stays free covers the rest."""
    shape = BatchShape(batch, length, predictions := round(0.15 * length), read=predictions + 1)
    for recompute_every, peak in enumerate(PEAKS[name, length, batch]):
        assert 0.85 < step_memory(model(name), shape, recompute_every) / GIB / peak < 1.2


def test_the_estimate_of_lora_is_near_what_was_measured():
    """By tools/measure_memory.py --lora-rank 8; counted as all weights, a larger model would be cut for nothing."""
    base = model("base")
    estimate = step_memory(base, BatchShape(4, 128, 19), frozen=total(encoder_parts(base)))
    assert 0.85 < estimate / GIB / 2.27 < 1.15


def test_more_of_anything_needs_more():
    small = step_memory(model("mini"), shape := BatchShape(8, 128, 20, read=21))
    larger = [dataclasses.replace(shape, **{field: 2 * getattr(shape, field)}) for field in vars(shape)]
    assert all(step_memory(model("mini"), other) > small for other in larger)
    assert step_memory(model("small"), shape) > small > step_memory(model("mini"), shape, 1)
    assert small > step_memory(model("mini"), shape, 2) > step_memory(model("mini"), shape, 1)
    assert step_memory(RecurrentConfig(), shape) > 0


@pytest.mark.parametrize(("name", "batch", "read", "written"), PEAKS_OF_DECODERS)
def test_the_estimate_of_a_decoder_is_near_what_was_measured(name, batch, read, written):
    """Without its blocks and a T5's scores, a third of a BART is missing, which was killed where it seemed to fit."""
    config = dataclasses.replace(model(name), vocab_size=8192)
    estimate = step_memory(config, BatchShape(batch, read, written)) / GIB
    assert 0.85 < estimate / PEAKS_OF_DECODERS[name, batch, read, written] < 1.15
    # A task on its encoder has no decoder.
    assert step_memory(config, BatchShape(batch, read)) / GIB < 0.8 * estimate


def test_a_gated_network_is_counted_twice():
    """T5 1.1 has two layers where T5 has one; the second used to be left out."""
    gated = dataclasses.replace(model("t5-mini"), vocab_size=8192, is_gated=True, hidden_act="gelu_new")
    assert 0.85 < step_memory(gated, BatchShape(16, 512, 103)) / GIB / 3.85 < 1.15


def test_a_gated_network_with_as_many_parameters_keeps_a_third_more():
    """Two layers of two thirds of the width used to be counted as one of the whole."""
    plain, gated = (config_from_mapping({**vars(model("tiny")), "model_type": kind}) for kind in GATED_AND_NOT)
    shape, more = BatchShape(32, 512, 77), {"intermediate_size": plain.intermediate_size * 4 // 3}
    assert step_memory(plain, shape) < step_memory(gated, shape)
    blocks = [accumulation._block_floats(config, 512)[0] for config in (dataclasses.replace(plain, **more), gated)]
    assert blocks[1] == pytest.approx(blocks[0], rel=0.01)


@pytest.mark.parametrize(("name", "length", "batch", "predicts"), PEAKS_WITH_A_TEACHER)
def test_the_estimate_with_a_teacher_is_near_what_was_measured(name, length, batch, predicts):
    """The teacher used to be left out: beside a mini, a base takes half as much again."""
    predictions = {128: 20, 512: 77}[length]
    shape = BatchShape(batch, length, predictions, read=predictions + 1 if predicts else 0)
    estimate = step_memory(model(name), shape) + Companion(model("base"), False, predicts).memory(shape, in_half=False)
    assert 0.95 < estimate / GIB / PEAKS_WITH_A_TEACHER[name, length, batch, predicts] < 1.25


@pytest.mark.parametrize(("shape", "peak"), [(BatchShape(64, 128, 20), 2.52), (BatchShape(32, 512, 77), 4.79)])
def test_the_estimate_with_a_generator_is_near_what_was_measured(shape, peak):
    """Of electra-mini, which used to be left out: a quarter as wide as the model, it takes a sixth as much."""
    config = model("electra-mini")
    estimate = step_memory(config, shape) + Companion(config.generator(0.25), True).memory(shape, in_half=False)
    assert 1 < estimate / GIB / peak < 1.15


def test_companions_make_slices_smaller(choose):
    base, shape = model("base"), BatchShape(16, 512, 77)
    teacher = Companion(base, is_trained=False)
    assert choose(22, shape)[0] == 1 and choose(22, shape, companions=[teacher])[0] == 2


def test_a_gpu_in_half_precision_is_counted_in_half(choose, monkeypatch):
    """Peaks of base, 32 x 512, compiled, on an H200: counted in float32, batches were sliced that would fit twice."""
    base, shape = model("base"), BatchShape(32, 512, 77, read=78)
    assert 1 < step_memory(base, shape, in_half=True) / 12.5e9 < 1.5 < step_memory(base, shape) / 12.5e9
    monkeypatch.setattr(accumulation, "on_gpus", lambda strategy: True)
    in_half = TrainingConfig(precision="bfloat16", jit_compile=True)
    assert choose(24, shape, training=in_half)[0] == 1
    for other in ({"precision": "float32"}, {"jit_compile": "auto"}):  # `auto` begins uncompiled.
        assert choose(24, shape, training=dataclasses.replace(in_half, **other))[0] == 2


def test_the_last_block_is_counted_where_it_is_read():
    """A task that reads every token needs all of it, as does a block while it is recomputed."""
    narrow, whole = BatchShape(64, 128, 20, read=21), BatchShape(64, 128, 20)
    saved = step_memory(model("mini"), whole) - step_memory(model("mini"), narrow)
    assert 0.6 < saved / (step_memory(model("mini"), whole) - step_memory(model("mini"), whole, 1)) * 3 < 0.9
    assert step_memory(model("mini"), narrow, 1) == step_memory(model("mini"), whole, 1)


def test_the_fewest_slices_that_fit(choose, mirrored_strategy):
    """The paper's BERT-base needs 240 GiB in one slice; without an accelerator it used to end with a core dump."""
    slices, said = choose(24, *PAPER)
    assert slices == 16
    assert said == ["Batches of 256 in 16 slices of 16: about 17.5 GiB of 24.0 GiB of memory (training.accumulation)."]
    halves, said = choose(24, *PAPER, strategy=mirrored_strategy)
    assert halves == 32 and "32 slices of 4 on each of 2 replicas: about 7." in said[0]
    found = [choose(memory, *PAPER)[0] for memory in (4, 8, 16, 32, 64, 128, 512)]
    assert found == sorted(found, reverse=True) and all(256 % slices == 0 for slices in found) and found[-1] == 1
    assert choose(16, BatchShape(30, 512, 77), BatchShape(12, 128, 20))[0] in (3, 6)
    slices, said = choose(1, *PAPER)
    assert slices == 256 and "which is not enough" in said[0]
    assert choose(1, BatchShape(8, 64, 10), size="tiny") == (1, [])  # Slices would only slow it down.
    assert choose(None, *PAPER) == choose(512, *PAPER) == (1, [])


def test_workers_on_a_machine_share_its_memory(monkeypatch):
    """Comparing each worker's peak with all of it would accept batches that do not fit."""
    monkeypatch.setattr(accumulation, "memory_limit", lambda: 12 * GIB)
    monkeypatch.setattr(accumulation, "process_count", lambda strategy: 3)

    def memory(index):
        task = {"type": "worker", "index": index}
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"worker": ["a:1", "b:1", "a:2"]}, "task": task}))
        return memory_of_a_process(tf.distribute.OneDeviceStrategy("CPU:0")) / GIB

    assert [memory(index) for index in range(3)] == [6, 12, 6]


def test_a_number_is_taken_and_anything_else_refused(choose):
    assert choose(4, *PAPER, training=TrainingConfig(accumulation=2)) == (2, [])
    for value in (0, -1, "many", 1.5, True):
        with pytest.raises(UserError, match="^training.accumulation: needs a"):
            from_mapping(TrainingConfig, {"accumulation": value}, "training")


def test_a_run_that_has_begun_keeps_its_slices(choose, tmp_path):
    """Otherwise, with more memory free or elsewhere, it would add up other slices and end with other bits."""
    run = RunFolder(str(tmp_path))
    with run:
        run.bind(PretrainConfig.from_mapping({"training": {"accumulation": 16}}))
        assert choose(64, *PAPER, run=run)[0] == 8
        os.mkdir(tmp_path / "checkpoints")
        os.mkdir(tmp_path / "checkpoints" / "step-000000001")
        assert choose(64, *PAPER, run=run) == (16, [])
        assert choose(64, *PAPER, run=run, training=TrainingConfig(accumulation=4))[0] == 4
        assert choose(64, BatchShape(24, 512, 77), run=run)[0] == 1  # 16 slices of 24 there are not.
