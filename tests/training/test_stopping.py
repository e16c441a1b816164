"""How a run ends before its last step: on request with a checkpoint, by a kill, or because the loss is no number."""

import concurrent.futures
import contextlib
import os
import signal
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import tensorflow as tf

from keras_bert.config.training import TrainingConfig
from keras_bert.core import program
from keras_bert.core.errors import RunStopped, UserError
from keras_bert.training.budget import StepBudget
from keras_bert.training.loop import Loop
from keras_bert.training.run_context import CheckpointClock, RunContext
from keras_bert.training.stop_request import StopRequest


class FakeStep:
    """Losses by step; everything else is 1."""

    class objective:
        terms = ("mlm",)

    def __init__(self, losses):
        self.losses = losses

    def train(self, batch, step):
        one = tf.constant(1.0)
        sums = {"mlm": {"loss": tf.constant(self.losses[int(step)])}}
        return {
            "sums": sums,
            "counts": {"mlm": one},
            "examples": one,
            "tokens": one,
            "grad_norm": one,
            "learning_rate": tf.constant(0.25),
        }


def make_loop(losses, stop, clock=None, eval_loss=1.0, **settings):
    often = {"steps": len(losses), "log_every": 4, "evaluate_every": 100, "checkpoint_every": 4, "rollbacks": 0}
    settings = TrainingConfig(**{**often, **settings})
    checkpoints = Mock(unlogged=None, watch=None, saved=[])
    checkpoints.save = lambda step, *_: checkpoints.saved.append(step)
    checkpoints.steps = lambda: checkpoints.saved
    checkpoints.is_best.return_value = False
    loop = Loop(
        SimpleNamespace(
            trainer=FakeStep(losses),
            budget=StepBudget(settings.steps, [1.0]),
            checkpoints=checkpoints,
            averaged_weights=contextlib.nullcontext,
        ),
        lambda first, skipped: (None for _ in losses[first:]),
        lambda done: {"eval_loss": eval_loss},
        settings,
        RunContext(Mock(), Mock(), stop, clock or CheckpointClock()),
    )
    return loop, checkpoints


def test_a_signal_saves_after_the_step_and_states_its_status():
    with StopRequest() as stop:
        loop, checkpoints = make_loop([1.0] * 10, stop)
        train = loop.step.train

        def interrupted_train(batch, step):
            if int(step) == 5:
                os.kill(os.getpid(), signal.SIGTERM)
            return train(batch, step)

        loop.step.train = interrupted_train
        with pytest.raises(RunStopped, match="SIGTERM after step 6, 60.0% of the run") as stopped:
            loop.run(0)
    assert stopped.value.status == 75
    assert checkpoints.saved == [4, 6]


def test_outside_the_main_thread_signals_are_left_alone():
    """Python refuses to handle them there, and a run in a thread of a server or a notebook would not start."""
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        assert thread.submit(lambda: StopRequest(max_minutes=1.0).__enter__().reason()).result() is None


def test_a_handler_that_python_does_not_know_is_left_alone(monkeypatch):
    """It cannot be restored: a run in a host of Python, such as R, would end in a TypeError before its results."""
    monkeypatch.setattr(signal, "getsignal", lambda number: None)
    monkeypatch.setattr(signal, "signal", lambda number, handler: pytest.fail("replaced"))
    with StopRequest() as stop:
        assert stop.reason() is None


def test_a_fresh_run_that_is_stopped_says_what_resumes_it(monkeypatch):
    """The same command would start over in another folder, and the checkpoint would be left unused."""
    monkeypatch.setattr(program, "_fresh_folder", "runs/wiki-2")
    loop, _ = make_loop([1.0] * 10, StopRequest(max_minutes=1e-9))
    with pytest.raises(RunStopped, match="Run the same command with --output runs/wiki-2 and without --fresh to res"):
        loop.run(0)


@pytest.mark.parametrize("name", ["SIGHUP", "SIGINT"])
def test_a_closed_terminal_asks_to_stop_unless_that_is_ignored(name):
    """A run under nohup goes on; any other would lose what came after its last checkpoint."""
    number = getattr(signal, name)
    with StopRequest() as stop:
        os.kill(os.getpid(), number)
        assert (stop.reason(), stop.status) == (name, 75)
    previous = signal.signal(number, signal.SIG_IGN)
    try:
        with StopRequest() as stop:
            os.kill(os.getpid(), number)
            assert stop.reason() is None
    finally:
        signal.signal(number, previous)


def test_the_log_is_never_behind_a_checkpoint():
    """Steps before a checkpoint are not done again, so their lines would be missing for ever."""
    loop, checkpoints = make_loop([1.0] * 8, StopRequest())
    happened = []
    loop.context.log.flush = lambda: happened.append("flush")
    checkpoints.save = lambda step, *_: happened.append(step)
    loop.run(0)
    assert happened == ["flush", 4, "flush", 8]


def test_the_time_limit_is_no_failure(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    stop = StopRequest(max_minutes=2.0)
    loop, checkpoints = make_loop([1.0] * 10, stop)
    loop.context.progress.advance = lambda done, share: now.__setitem__(0, now[0] + 50.0)
    with pytest.raises(RunStopped, match="the time limit after step 3") as stopped:
        loop.run(0)
    assert stopped.value.status == 0 and checkpoints.saved == [3]


def test_the_time_limit_counts_from_the_start_of_the_command(monkeypatch):
    """A job whose limit is its slot would be killed: start-up takes time too."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    stop = StopRequest(max_minutes=2.0, started_at=40.0)
    assert stop.reason() is None
    now[0] = 160.0
    assert stop.reason() == "the time limit"


@pytest.mark.parametrize(("other", "status"), [("SIGTERM", 75), ("the time limit", 0)])
def test_a_worker_that_stops_for_another_ends_with_its_status(other, status):
    """If one worker succeeded and another failed, a Kubernetes Job would end before its run is done."""
    added = []
    with StopRequest(0.0 if other == "SIGTERM" else 1e-9, agree=lambda own: added.append(own) or own) as asked:
        if other == "SIGTERM":
            os.kill(os.getpid(), signal.SIGTERM)
        assert (asked.reason(), asked.status) == (other, status)
    waiting = StopRequest(agree=lambda own: own + added[0])
    assert (waiting.reason(), waiting.status) == ("another worker", status)
    late = StopRequest(1e-9, agree=lambda own: own + added[0])
    assert (late.reason(), late.status) == ("the time limit", status)


def test_many_time_limits_are_no_signal():
    stop = StopRequest(agree=lambda own: own + 10_000.0)
    assert (stop.reason(), stop.status) == ("another worker", 0)


def test_a_kill_costs_minutes_where_steps_are_slow(monkeypatch):
    """A step of 3 minutes, a log every 2 steps, a checkpoint every 100: the clock's 10 minutes are over at steps 4, 8
    and, after the checkpoint that the validation of step 9 brings, not at 10 but at 14."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    loop, checkpoints = make_loop(
        [1.0] * 15, StopRequest(), CheckpointClock(10.0), log_every=2, checkpoint_every=100, evaluate_every=9
    )
    loop.context.progress.advance = lambda done, share: now.__setitem__(0, now[0] + 180.0)
    loop.checkpoints.is_best = lambda score: score is not None
    loop.run(0)
    assert checkpoints.saved == [4, 8, 9, 14, 15]


def test_what_is_kept_for_good_is_saved_between_the_other_checkpoints_too():
    """Only multiples of both intervals used to be saved, so here only the last could be kept."""
    loop, checkpoints = make_loop([1.0] * 12, StopRequest(), checkpoint_every=100, keep_every=3)
    loop.run(0)
    assert checkpoints.saved == [3, 6, 9, 12]


def test_a_short_run_logs_twenty_times_unless_told_otherwise():
    """It used to have one line, at its end; the interval that a recipe sets holds for any length."""
    for log_every, expected in ((0, list(range(2, 41, 2))), (16, [16, 32, 40])):
        loop, _ = make_loop([1.0] * 40, StopRequest(), log_every=log_every)
        lines = []
        loop.context.log.write = lambda step, figures, lines=lines: lines.append(step) if "loss" in figures else None
        loop.run(0)
        assert lines == expected


def test_workers_save_at_the_same_step_when_the_clock_of_one_says_so():
    """The sum over workers decides, because saving waits for all of them: one alone would wait for ever."""
    assert not CheckpointClock(10.0, agree=lambda own: own + 0.0).is_due()
    assert CheckpointClock(10.0, agree=lambda own: own + 1.0).is_due()


def test_a_later_signal_leaves_at_once():
    """One that comes together with the first, as from a terminal and a launcher, is the same request. Nor is closing
    the terminal another one, or that Ctrl-C also ended the `tee` which reads from a run."""
    code = (
        "import os, signal, time\n"
        "from keras_bert.training.stop_request import StopRequest\n"
        "with StopRequest():\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    time.sleep(1.1)\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "    print('noted', flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    print('still here', flush=True)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (130, "noted\n")


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("first_step", [0, 4])
def test_without_rollbacks_no_number_stops_the_run_and_never_reaches_a_checkpoint(bad, first_step):
    """Step 7 is wrong; the next look is at 8, where a checkpoint is due too."""
    loop, checkpoints = make_loop([1.0] * 6 + [bad] * 4, StopRequest())
    checkpoints.saved = [4] if first_step else []
    with pytest.raises(UserError, match="Step 7: .*learning rate of about 0.25. The last good checkpoint is at step 4"):
        loop.run(first_step)
    assert checkpoints.saved == [4]


def test_weights_that_are_not_finite_are_neither_saved_nor_validated_nor_the_result():
    """The loss of a step is computed before its update: one that spoils the weights shows in no loss up to then."""
    for done, good in ((4, "No checkpoint is from before it"), (8, "The last good checkpoint is at step 4")):
        loop, checkpoints = make_loop([1.0] * 8, StopRequest())
        loop.evaluate = lambda done: pytest.fail("It was validated.")
        checkpoints.are_finite = lambda loop=loop, done=done: loop.done < done
        message = f"Step {done}: a weight or the optimizer's state is no longer finite, at .* {good}"
        with pytest.raises(UserError, match=message):
            loop.run(0)
        assert checkpoints.saved == [4][: done // 4 - 1]


def test_a_validation_whose_loss_is_no_number_is_no_result():
    """The weights are finite but huge; such a run used to end with status 0."""
    loop, checkpoints = make_loop([1.0] * 4, StopRequest(), eval_loss=float("nan"))
    with pytest.raises(UserError, match="Step 4: the validation's loss is no longer finite"):
        loop.run(0)
    assert checkpoints.saved == []
