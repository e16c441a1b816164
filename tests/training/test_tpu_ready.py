"""What can be proved of a TPU without one: the whole step compiles, in bfloat16, with static shapes and no strings."""

import dataclasses

import pytest
import tensorflow as tf
import tensorflow_datasets as tfds
from command_line import output_of
from corpus import documents
from graph_ops import all_operations
from tiny import pretraining_batch, tiny_config

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import find_config
from keras_bert.config.training import OptimizerConfig
from keras_bert.core.errors import UserError
from keras_bert.inference.loading import load
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective
from keras_bert.tasks.pretraining.run import Pretraining
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.step import Step
from keras_bert.training.strategy import _tpu, describe, make_strategy

# Ops that TPUs do not have, or that give shapes known only when they run. XLA on the CPU takes some of them.
FORBIDDEN = (
    "String",
    "Ragged",
    "Sparse",
    "Where",
    "Unique",
    "BooleanMask",
    "PyFunc",
    "DecodeRaw",
    "ReadFile",
    "NonMaxSuppression",
)


def whole_step(config, accumulation=1, **batch):
    """(the compiled function of forward, backward, reduction, clip and update, its arguments)."""
    model = BertForPreTraining(config, dtype="mixed_bfloat16")
    optimizer = make_optimizer(OptimizerConfig(learning_rate=1e-3, warmup_steps=2), 10)
    optimizer.build(model.trainable_variables)
    strategy = tf.distribute.get_strategy()
    step = Step(strategy, model, PretrainingObjective(4), optimizer, jit_compile=True, accumulation=accumulation)
    batch = {name: tf.constant(value) for name, value in pretraining_batch(config, **batch).items()}
    return tf.function(step._train_replica, jit_compile=True, autograph=False), (batch, tf.constant(0, tf.int64))


@pytest.fixture(scope="module")
def small():
    return whole_step(tiny_config(num_hidden_layers=1))


@pytest.mark.parametrize("accumulation", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_whole_step_compiles_in_bfloat16(small, accumulation):
    function, arguments = small if accumulation == 1 else whole_step(tiny_config(num_hidden_layers=1), accumulation)
    first = function(*arguments)
    second = function(arguments[0], tf.constant(1, tf.int64))
    assert float(second["sums"]["mlm"]["loss"]) != float(first["sums"]["mlm"]["loss"])
    assert float(first["grad_norm"]) > 0


@pytest.fixture(scope="module")
def base():
    """Two of its layers, which are all alike."""
    config = dataclasses.replace(BertConfig.from_file(find_config("models", "base")), num_hidden_layers=2)
    return whole_step(config, batch=2, seq=128, predictions=5)


@pytest.mark.slow
def test_the_whole_step_of_a_real_size_compiles(base):
    """XLA's compiler takes it to the end; nothing is run."""
    function, arguments = base
    assert "bf16[" in function.experimental_get_compiler_ir(*arguments)(stage="hlo")
    assert "HloModule" in function.experimental_get_compiler_ir(*arguments)(stage="optimized_hlo")


@pytest.mark.parametrize("size", ["small", pytest.param("base", marks=pytest.mark.slow)])
def test_the_graph_has_static_shapes_and_no_foreign_op(size, request):
    function, arguments = request.getfixturevalue(size)
    operations = list(all_operations(function.get_concrete_function(*arguments).graph))
    assert len(operations) > 200
    for operation in operations:
        is_known = operation.type == "SparseSoftmaxCrossEntropyWithLogits"  # Of dense logits; XLA has it everywhere.
        assert is_known or not operation.type.startswith(FORBIDDEN), operation.type
        for output in operation.outputs:
            assert output.dtype != tf.string, operation.name
            # BroadcastGradientArgs is worked out when XLA compiles, from shapes that are static.
            if output.dtype not in (tf.resource, tf.variant) and operation.type != "BroadcastGradientArgs":
                assert output.shape.is_fully_defined(), f"{operation.name}: {output.shape}"


def test_no_tpu_is_one_clear_line():
    with pytest.raises(
        UserError, match=r"no TPU was found on this machine \(--tpu local; .*auto would train on CPU:0.*docs/tpu.md"
    ):
        make_strategy("tpu")


def test_mirrored_runs_of_a_process_share_a_strategy(mirrored_strategy):
    """A second one numbers its collectives as the first did: with another model, both ended in a shape mismatch."""
    assert make_strategy("auto", ["CPU:0", "CPU:1"]) is mirrored_strategy


@pytest.mark.parametrize(
    ("output", "data"), [("runs/x", {}), ("ram://runs/x", {"files": ["ram://a.txt", "c.txt"], "source": "text"})]
)
def test_a_tpu_of_another_machine_is_not_given_paths_of_this_one(output, data, monkeypatch):
    """It used to fail only after the vocabulary and the shards were made, when the TPU's host opened the first file."""
    monkeypatch.setattr("keras_bert.tasks.pretraining.run.make_strategy", lambda *_: pytest.fail("It connected."))
    values = {"data": data, "objective": {"pair": "none"}, "training": {"strategy": "tpu", "tpu": "far"}}
    config = PretrainConfig.from_mapping(values)
    with pytest.raises(UserError, match="^training.tpu: with 'far', .* Received: (runs/x|c.txt). Give --output"):
        Pretraining(config, RunFolder(output))


def test_no_workers_and_no_such_device_are_named(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(UserError, match="needs TF_CONFIG.*run.py launch"):
        make_strategy("multiworker")
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {}}')
    with pytest.raises(UserError, match="TF_CONFIG: needs"):
        make_strategy("multiworker")
    with pytest.raises(UserError, match="training.devices: '' is not on this machine. It has .*CPU:0"):
        make_strategy("mirrored", ["CPU:0", ""])
    with pytest.raises(UserError, match="GPU:7 is not on this machine. It has .*CPU:0"):
        make_strategy("mirrored", ["GPU:7"])


def test_auto_takes_what_is_here_and_says_so(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.delenv("TPU_NAME", raising=False)
    if len(tf.config.list_physical_devices("GPU")) < 2:
        assert "OneDeviceStrategy" in describe(make_strategy("auto"))


@pytest.mark.parametrize(("devices", "maker"), [(["CPU:1"], "_one"), (["CPU:0", "CPU:1"], "_mirrored")])
def test_auto_takes_the_devices_that_are_named(monkeypatch, devices, maker):
    """It used to take the first of several."""
    monkeypatch.delenv("TF_CONFIG", raising=False)
    made = []
    monkeypatch.setattr(f"keras_bert.training.strategy.{maker}", made.append)
    make_strategy("auto", devices)
    assert made == [devices]


@pytest.mark.parametrize(
    ("name", "devices", "message"),
    [
        ("one", ["CPU:0", "CPU:1"], "at most one device with training.strategy one. Received: CPU:0, CPU:1. .*mirror"),
        ("multiworker", ["GPU:0"], "no value with training.strategy multiworker. .*CUDA_VISIBLE_DEVICES"),
        ("auto", ["GPU:0"], "no value with training.strategy multiworker"),
        ("tpu", ["CPU:0"], "no value with training.strategy tpu. Received: CPU:0. --tpu chooses"),
    ],
)
def test_devices_that_would_not_be_used_are_refused(monkeypatch, name, devices, message):
    workers = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}'
    monkeypatch.setenv("TF_CONFIG", workers)
    monkeypatch.setattr("keras_bert.training.strategy.WORKER_SECONDS", 0)
    with pytest.raises(UserError, match=f"training.devices: needs {message}"):
        make_strategy(name, devices)


@pytest.mark.slow
def test_the_bare_command_trains_from_wikipedia_on_what_the_resolver_finds(mirrored_strategy, tmp_path, monkeypatch):
    """Only the connection and the chips are stand-ins, two CPUs. Other tests cover each part, but not the way there."""
    made = []

    class TPUStrategy(type(mirrored_strategy)):
        def __new__(cls, resolver):
            return mirrored_strategy

        def __init__(self, resolver):
            made.append(self)

    features = tfds.features.FeaturesDict({"text": tfds.features.Text()})
    articles = [(number, {"text": text}) for number, text in enumerate(documents(200))]
    name, config = "wikipedia", "20230601.en"
    tfds.dataset_builders.store_as_tfds_dataset(
        name=name,
        config=config,
        version="1.0.0",
        data_dir=tmp_path,
        features=features,
        split_datasets={"train": articles},
    )
    monkeypatch.setattr("tensorflow_datasets.core.constants.DATA_DIR", str(tmp_path))
    monkeypatch.setattr(tf.distribute.cluster_resolver, "TPUClusterResolver", lambda tpu: made.append(tpu))
    monkeypatch.setattr(tf.tpu.experimental, "initialize_tpu_system", lambda resolver: made.append("initialized"))
    monkeypatch.setattr(tf.distribute, "TPUStrategy", TPUStrategy)
    monkeypatch.setattr(mirrored_strategy, "__class__", TPUStrategy)
    monkeypatch.setattr("keras_bert.training.strategy._tpu", _tpu.__wrapped__)
    small = "hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 32, vocab_size: 120"
    command = ["pretrain", "--strategy", "tpu", "--steps", "6", "--output", str(tmp_path / "run")]
    for change in (f"model={{{small}}}", "phases.0.batch_size=8", "phases.1.batch_size=4"):
        command += ["--set", change]
    told = output_of(*command)
    assert made == ["local", "initialized", mirrored_strategy] * 2
    assert "by TPUStrategy on CPU:0, CPU:1, 2 replica(s)" in told and "after 6 steps" in told
    assert load(str(tmp_path / "run")).encode(["Some text."]).shape == (1, 16)
