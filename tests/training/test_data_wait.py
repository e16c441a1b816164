"""data_wait_fraction against pipelines and steps slowed by hand, on a clock that moves only when something waits."""

import contextlib
import types
from unittest.mock import Mock

import pytest

from keras_bert.config.training import TrainingConfig
from keras_bert.training import metrics
from keras_bert.training.budget import StepBudget
from keras_bert.training.loop import Loop
from keras_bert.training.run_context import CheckpointClock, RunContext
from keras_bert.training.stop_request import StopRequest

STEPS = 12


class Clock:
    def __init__(self):
        self.now = 0.0

    def wait_until(self, time):
        self.now = max(self.now, time)


class Pending:
    """A number that is known at a certain time; whoever asks earlier waits."""

    def __init__(self, clock, known_at):
        self._clock, self.known_at = clock, known_at

    def __float__(self):
        self._clock.wait_until(self.known_at)
        return 1.0

    def __int__(self):
        return int(float(self))


class TimedStep:
    """A step that only takes its time: in the call or, like an accelerator, after it."""

    class objective:
        terms = ("mlm",)

    def __init__(self, clock, seconds, returns_at_once):
        self._clock, self._seconds, self._returns_at_once = clock, seconds, returns_at_once
        self.ends = [clock.now]

    def train(self, batch, step):
        self.ends.append(max(self._clock.now, self.ends[-1]) + self._seconds)
        value = Pending(self._clock, self.ends[-1])
        if not self._returns_at_once:
            float(value)
        return {
            "sums": {"mlm": {"loss": value}},
            "counts": {"mlm": value},
            "examples": value,
            "tokens": value,
            "grad_norm": value,
            "learning_rate": value,
        }


@pytest.mark.parametrize("returns_at_once", [False, True], ids=["in the call", "after the call"])
@pytest.mark.parametrize(
    ("batch_seconds", "step_seconds", "made_ahead"),
    [
        (0.15, 0.05, True),  # The data are the bottleneck: a batch is made while a step runs, but takes longer.
        (0.05, 0.15, True),  # They are not.
        (0.05, 0.15, False),  # Made when asked for; steps that run after the call still hide it.
    ],
)
def test_it_is_true_to_5_points(monkeypatch, batch_seconds, step_seconds, made_ahead, returns_at_once):
    """The truth: from the end of each step to the arrival of the next batch nothing is computed."""
    clock, made = Clock(), []
    monkeypatch.setattr(
        metrics, "time", types.SimpleNamespace(perf_counter=lambda: clock.now, process_time=lambda: clock.now)
    )
    # In another thread, which waits without moving this one's clock.
    monkeypatch.setattr(metrics, "_time_when_known", lambda value: value.known_at)

    def batches(first, skipped):
        begun = clock.now
        for number in range(STEPS):
            clock.wait_until((begun if made_ahead else clock.now) + batch_seconds)
            begun = clock.now
            made.append(clock.now)
            yield number

    step, log = TimedStep(clock, step_seconds, returns_at_once), Mock()
    checkpoints = Mock(unlogged=None, watch=None)
    checkpoints.is_best.return_value = False
    settings = TrainingConfig(steps=STEPS, log_every=STEPS, evaluate_every=STEPS, checkpoint_every=STEPS)
    Loop(
        types.SimpleNamespace(
            trainer=step,
            budget=StepBudget(STEPS, [1.0]),
            checkpoints=checkpoints,
            averaged_weights=contextlib.nullcontext,
        ),
        batches,
        lambda done: {"eval_loss": 1.0},
        settings,
        RunContext(log, Mock(), StopRequest(), CheckpointClock()),
    ).run(0)
    waited = sum(max(ready - end, 0.0) for ready, end in zip(made, step.ends))
    truth = waited / (step.ends[-1] - step.ends[0])
    assert log.write.call_args_list[0].args[1]["data_wait_fraction"] == pytest.approx(truth, abs=0.05)
    if made_ahead:
        expected = 1.0 - step_seconds / batch_seconds if batch_seconds > step_seconds else 0.0
        assert truth == pytest.approx(expected, abs=0.1)
