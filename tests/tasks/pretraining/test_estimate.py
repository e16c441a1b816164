"""Estimates of what a run takes."""

import dataclasses
from types import SimpleNamespace

import pytest
import tensorflow as tf
from corpus import write_corpus

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core.errors import UserError
from keras_bert.tasks.pretraining.estimate import (
    MemoryFit,
    Timing,
    _evaluations,
    _sizes,
    duration,
    estimate,
    memory_fit,
    time_checkpoint,
    time_phase,
)
from keras_bert.tasks.pretraining.run import Pretraining
from keras_bert.training.run_folder import RunFolder


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    corpus = write_corpus(tmp_path_factory.mktemp("corpus") / "text.txt")
    model = {"vocab_size": 120, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    return PretrainConfig.from_mapping(
        {
            "model": {**model, "intermediate_size": 32, "max_position_embeddings": 32},
            "data": {"files": [corpus], "validation_share": 0.1},
            "phases": [
                {"share": 0.75, "sequence_length": 16, "batch_size": 8, "max_predictions_per_seq": 3},
                {"share": 0.25, "sequence_length": 32, "batch_size": 4, "max_predictions_per_seq": 8},
            ],
            "training": {"steps": 1000, "evaluate_every": 100, "checkpoint_every": 250, "evaluation_examples": 32},
        }
    )


def built(config, folder):
    pretraining = Pretraining(config, RunFolder(str(folder)))
    pretraining.build()
    return pretraining


@pytest.fixture
def timed(monkeypatch):
    """Known times instead of measured ones: 10 and 30 ms a step, 2 s to compile, 1 s a validation, 0.5 s a save."""
    monkeypatch.setattr(
        "keras_bert.tasks.pretraining.estimate.time_phase",
        lambda _, phase: Timing([0.01, 0.03][phase], 2.0, 1.0, [96.0, 100.0][phase]),
    )
    monkeypatch.setattr("keras_bert.tasks.pretraining.estimate.time_checkpoint", lambda _: 0.5)
    monkeypatch.setattr("keras_bert.tasks.pretraining.estimate.memory_fit", lambda _: None)


def test_a_run_of_so_many_steps(config, tmp_path, timed):
    result = estimate(built(config, tmp_path / "run"))
    assert [phase.steps for phase in result.phases] == [750, 250]
    assert [phase.sequences for phase in result.phases] == [6000, 1000]
    assert [phase.tokens for phase in result.phases] == [72_000, 25_000]
    assert (result.evaluations, result.checkpoints) == (10, 4)
    assert result.seconds == pytest.approx(7.5 + 7.5 + 2 * 2.0 + 10 * 1.0 + 4 * 0.5)
    assert result.parameter_memory == 16 * result.parameters
    assert any("6,000 sequences" in line for line in result.lines())
    assert not any("initialize" in line for line in result.lines())
    result.evaluations, result.phases[0].epochs, result.phases[1].epochs = 166_667, 45_000.0, 2.54
    text = "\n".join(result.lines())
    assert "(45,000 epochs)" in text and "(2.5 epochs)" in text and "with 166,667 validations" in text
    result.seconds_before = 12.0
    assert any("12 seconds to initialize the weights" in line for line in result.lines())


@pytest.mark.parametrize(
    ("steps", "every", "validations"),
    [([750, 250], 100, [7, 3]), ([3400], 1000, [4]), ([750, 50], 400, [1, 1]), ([30, 10], 100, [0, 1]), ([0], 5, [1])],
)
def test_validations_come_every_so_many_steps_and_at_the_end(steps, every, validations):
    """Otherwise the estimate would leave out the last validation's time."""
    assert _evaluations(steps, every) == validations


def test_checkpoints_by_the_clock_are_counted(config, tmp_path, timed):
    """Where steps are slow, nearly all checkpoints are by the clock: the default is one in ten minutes."""
    training = dataclasses.replace(config.training, checkpoint_minutes=0.75 / 60)  # 75 steps of the first phase.
    result = estimate(built(dataclasses.replace(config, training=training), tmp_path / "run"))
    assert result.checkpoints == 750 // 75 + 250 // 25
    assert result.seconds == pytest.approx(7.5 + 7.5 + 2 * 2.0 + 10 * 1.0 + 20 * 0.5)


def test_a_run_of_so_much_time(config, tmp_path, timed):
    """Compiling and the last validation take 5 of 60 seconds; a step also costs its share of validations and saves."""
    training = dataclasses.replace(config.training, minutes=1.0)
    result = estimate(built(dataclasses.replace(config, training=training), tmp_path / "run"))
    assert result.seconds == 60.0
    assert [phase.steps for phase in result.phases] == [round(55 * 0.75 / 0.022), round(55 * 0.25 / 0.042)]
    assert not any("No step fits" in line for line in result.lines())


def test_a_run_too_short_to_compile_has_no_steps_and_says_so(config, tmp_path, timed):
    training = dataclasses.replace(config.training, minutes=0.05)
    result = estimate(built(dataclasses.replace(config, training=training), tmp_path / "run"))
    assert [(phase.steps, phase.tokens) for phase in result.phases] == [(0, 0), (0, 0)]
    assert any("of 3 seconds, compiling and the last validation alone take 5" in line for line in result.lines())


@pytest.mark.parametrize(
    ("too_large", "key"),
    [
        ("memory_fit", "phases.1.batch_size 4"),
        ("choose", "phases.0.batch_size 8"),
        ("time_phase", "phases.0.batch_size 8"),
    ],
)
def test_a_batch_that_does_not_fit_is_explained(config, monkeypatch, too_large, key):
    """Whole batches are measured last, or a batch that is too large would hide the one that fits."""
    asked = []

    def step(name):
        def run(*arguments):
            asked.append(name)
            if name == too_large:
                raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")

        return run

    for name in ("memory_fit", "time_phase"):
        monkeypatch.setattr(f"keras_bert.tasks.pretraining.estimate.{name}", step(name))
    one = tf.distribute.OneDeviceStrategy("CPU:0")
    pretraining = SimpleNamespace(config=config, strategy=one, begin=lambda: None, choose_compilation=step("choose"))
    with pytest.raises(UserError, match=f"Out of memory with {key} on 1 replica.*accumulation=2"):
        estimate(pretraining)
    assert asked == ["memory_fit", "choose", "time_phase"][: len(asked)]


@pytest.mark.slow
def test_timed_steps_are_the_phases_own_and_nothing_is_kept(config, tmp_path, monkeypatch):
    monkeypatch.setattr("keras_bert.tasks.pretraining.estimate._WARM_UP_SECONDS", 0.1)
    monkeypatch.setattr("keras_bert.tasks.pretraining.estimate._TIMED_SECONDS", 0.3)
    pretraining = built(config, tmp_path / "run")
    first, second = (time_phase(pretraining, phase) for phase in range(2))
    assert 64 < first.tokens <= 8 * 16 and 64 < second.tokens <= 4 * 32
    assert all(value > 0 for timing in (first, second) for value in (timing.step, timing.compile, timing.evaluation))
    assert time_checkpoint(pretraining) > 0
    assert not (tmp_path / "run" / "checkpoints").exists()


GIB = 2**30


def fit(limit, batch_size=32, unit=4):
    """3 GiB, and 0.5 GiB for each example."""
    return MemoryFit("phases.0.batch_size", batch_size, 512, unit, (8, 16), (7 * GIB, 11 * GIB), limit * GIB)


def test_the_batch_that_fits_lies_on_the_line_through_two_peaks():
    roomy, tight = fit(40), fit(20)
    assert roomy.peak_of(32) == 19 * GIB and roomy.largest == 64  # (0.9 * 40 - 3) / 0.5 = 66, in multiples of four.
    assert "batch_size 32 x 512 needs about 19.0 GiB of 40.0 GiB" in roomy.line()
    assert "largest batch that fits is 64" in roomy.line() and "Lower it" not in roomy.line()
    assert tight.largest == 28 and "Lower it, or raise training.accumulation" in tight.line()
    assert fit(3).largest == 0 and "not even the smallest" in fit(3).line()


@pytest.mark.parametrize(
    ("batch_size", "unit", "sizes"), [(32, 1, (8, 16)), (32, 4, (8, 16)), (8, 4, (4, 8)), (1, 1, (1, 2))]
)
def test_the_two_sizes_are_measured_in_whole_slices(batch_size, unit, sizes):
    assert _sizes(batch_size, unit) == sizes


@pytest.mark.slow
def test_the_larger_phase_is_measured_at_two_sizes(config, tmp_path, monkeypatch):
    """Steps of half and of a quarter of a batch are run; the peaks of so small a model are noise, hence given."""
    peaks, limits = iter([7 * GIB, 11 * GIB]), 40 * GIB
    monkeypatch.setattr("keras_bert.tasks.pretraining.estimate.peak_memory", lambda: next(peaks))
    monkeypatch.setattr("keras_bert.tasks.pretraining.estimate.memory_of_a_process", lambda _: limits)
    pretraining = built(config, tmp_path / "run")
    measured = memory_fit(pretraining)
    assert (measured.key, measured.sizes, measured.peaks) == ("phases.1.batch_size", (1, 2), (7 * GIB, 11 * GIB))


@pytest.mark.parametrize(
    ("seconds", "said"), [(90, "90 seconds"), (600, "10 minutes"), (9000, "2.5 hours"), (260_000, "3.0 days")]
)
def test_durations(seconds, said):
    assert duration(seconds) == said
