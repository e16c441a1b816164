"""jit_compile: auto compiles where that ends the run sooner, changes nothing by trying, and is kept with the run."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from said import listen
from tiny import model_and_optimizer, pretraining_batch, tiny_config

from keras_bert.core.errors import UserError
from keras_bert.models.pretraining import PretrainingObjective
from keras_bert.training import compilation
from keras_bert.training.budget import StepBudget, TimeBudget
from keras_bert.training.compilation import Choice, StepSeconds, choose, pays
from keras_bert.training.engine import Engine, _set_recomputation
from keras_bert.training.loss_scale import LossScale
from keras_bert.training.step import Step

PLAIN, COMPILED = StepSeconds(2.0, 1.0), StepSeconds(22.0, 0.8)


@pytest.mark.parametrize(
    ("plain", "compiled", "other_shapes", "seconds_left", "expected"),
    [
        (PLAIN, COMPILED, 0, 100.0, True),  # What is compiled already costs nothing more.
        (PLAIN, COMPILED, 7, 600.0, False),  # 7 x 20.2 seconds to gain 120.
        (PLAIN, COMPILED, 7, 800.0, True),
        (PLAIN, StepSeconds(22.0, 1.0), 0, 1e6, False),  # No faster, as SQuAD's on idle cores.
        (PLAIN, StepSeconds(1.0, 0.9), 7, 100.0, True),  # Tracing twice is not compiling.
    ],
)
def test_it_pays_where_the_gain_is_more_than_the_compiling(plain, compiled, other_shapes, seconds_left, expected):
    assert pays(plain, compiled, other_shapes, seconds_left) is expected


def test_what_is_left_follows_the_steps_or_the_clock():
    assert StepBudget(100, [1.0]).seconds_left(40, 0.5) == 30.0
    assert TimeBudget(2.0, [1.0]).seconds_left(40, 0.5) == 120.0


@pytest.fixture(scope="module")
def step():
    strategy = tf.distribute.get_strategy()
    model, optimizer = model_and_optimizer(strategy, tiny_config(num_hidden_layers=1), 10)
    return Step(strategy, model, PretrainingObjective(4), optimizer, loss_scale=LossScale())


def choice_of(step, compiled, seconds_left, is_alone=True):
    batch = {name: tf.constant(value) for name, value in pretraining_batch(step.model.config).items()}
    return choose(step, compiled, batch, 8, lambda seconds: seconds_left, lambda question: question(), is_alone)


def test_the_timed_steps_leave_no_trace(step):
    """Weights, moments, the optimizer's step and the loss scale are as before."""
    variables = [*step.model.variables, *step.optimizer.variables, *step.loss_scale.variables]
    before, said = [variable.numpy() for variable in variables], listen()
    choice_of(step, step, 1000.0)
    for variable, value in zip(variables, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
    assert len(said) == 1 and "compiled. A step takes" in said[0] and "7 more batch shapes" in said[0]


def test_a_short_run_is_not_worth_a_try(step, monkeypatch):
    """300 steps of SST-2 in five shapes, 81 seconds, took 46 more to learn that compiling does not pay."""
    timed, said = [], listen()
    monkeypatch.setattr(compilation, "time_step", lambda which, batch: timed.append(which) or PLAIN)
    monkeypatch.setattr(compilation, "later_seconds", lambda which, batch: PLAIN.later)
    compiled = object()
    assert choice_of(step, compiled, 479.0) is False and timed == [step]
    assert said == [
        "jit_compile auto: not compiled, because 479 seconds of training are left, and compiling pays after "
        "480 at the earliest (60 for each batch shape)."
    ]
    choice_of(step, compiled, 481.0)
    assert timed[1:] == [step, compiled]


def test_a_slow_start_does_not_count_against_the_step_that_is_timed_first(step, monkeypatch):
    """SQuAD from BERT-mini used to be compiled, because the process's first steps took twice as long as later ones."""
    seconds, said = iter([StepSeconds(2.0, 2.0), StepSeconds(20.0, 1.0)]), listen()
    monkeypatch.setattr(compilation, "time_step", lambda which, batch: next(seconds))
    monkeypatch.setattr(compilation, "later_seconds", lambda which, batch: 1.0)
    assert choice_of(step, object(), 1000.0) is False
    assert "1 seconds with XLA, 1 without" in said[0]


OOM = tf.errors.InternalError(None, None, "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes")


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_compiled_step_that_does_not_fit_in_memory_is_not_taken(step, monkeypatch, is_alone):
    """The run used to end although the plain step fits. With other processes it still does: they wait in that step."""
    compiled, said = object(), listen()

    def time_step(which, batch):
        step.optimizer.variables[0].assign_add(1)
        if which is compiled:
            raise OOM
        return PLAIN

    monkeypatch.setattr(compilation, "time_step", time_step)
    monkeypatch.setattr(compilation, "later_seconds", lambda which, batch: PLAIN.later)
    before = step.optimizer.variables[0].numpy()
    if is_alone:
        assert choice_of(step, compiled, 1e6) is False
        assert said == ["jit_compile auto: not compiled, because the compiled step does not fit in memory."]
    else:
        with pytest.raises(tf.errors.InternalError):
            choice_of(step, compiled, 1e6, is_alone)
    np.testing.assert_array_equal(step.optimizer.variables[0].numpy(), before)


def test_other_errors_of_a_compiled_step_and_of_the_plain_one_pass(step, monkeypatch):
    for wrong, error in [("compiled", tf.errors.InvalidArgumentError(None, None, "shapes")), ("plain", OOM)]:

        def time_step(which, batch, wrong=wrong, error=error):
            if wrong == ("plain" if which is step else "compiled"):
                raise error
            return PLAIN

        monkeypatch.setattr(compilation, "time_step", time_step)
        with pytest.raises(type(error)):
            choice_of(step, object(), 1e6, [])


@pytest.mark.parametrize("compiles", [True, False])
def test_the_choice_is_made_once_and_kept(monkeypatch, compiles):
    plain, compiled, choice, chosen = object(), object(), Choice(), []
    monkeypatch.setattr("keras_bert.training.engine.choose", lambda *_: chosen.append(1) or compiles)
    engine = Engine(None, None, None, StepBudget(10, [1.0]), plain, plain, None, compiled, choice)
    for _ in range(2):  # The second stands for a resumed run, with the restored variable.
        decided = engine.with_compilation(0, lambda: (None, 1), 1)
        assert decided.step is decided.trainer is (compiled if compiles else plain)
    assert chosen == [1] and choice.value.numpy() == compiles


def test_without_auto_nothing_is_chosen():
    engine = Engine(None, None, None, None, object(), object(), None)
    assert engine.with_compilation(0, lambda: 1 / 0, 1) is engine


def test_more_blocks_than_there_are_cannot_be_recomputed():
    encoder = SimpleNamespace(blocks=[1, 2], trainable=True, recomputes=True)
    _set_recomputation(encoder, 2)
    assert encoder.recompute_every == 2
    with pytest.raises(UserError, match="training.recompute_every: needs at most the encoder's 2 blocks.*Received: 3"):
        _set_recomputation(encoder, 3)
