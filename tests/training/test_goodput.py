"""Goodput: the seconds of a run's parts, over kills and rollbacks, on a clock moved by hand."""

import types

import pytest

from keras_bert.training import goodput
from keras_bert.training.goodput import Goodput


@pytest.fixture
def clock(monkeypatch):
    clock = types.SimpleNamespace(now=100.0)
    monkeypatch.setattr(goodput, "time", types.SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def run(clock, lines, first, last, started_at):
    """Steps of 1 second from `first` to `last`, a line every ten of them, a validation and a checkpoint every 50."""
    measured = Goodput(lines, first, started_at)
    lines[:] = [line for line in lines if line["step"] <= first]  # As `MetricsLog` does.
    measured.begin()

    def log(step, figures):
        lines.append({"step": step, **figures, **measured.line(step, figures)})

    for step in range(first + 10, last + 1, 10):
        clock.now += 10
        log(step, {"loss": 1.0, "seconds": 10.0, "data_wait_fraction": 0.1, "flops_utilization": 0.5})
        if step % 50 == 0:
            clock.now += 4
            log(step, {"eval_loss": 1.0, "eval_seconds": 4.0})
            with measured.checkpointing():
                clock.now += 2
    return measured


def test_what_is_done_again_after_a_kill_is_lost_and_all_seconds_are_somewhere(clock):
    """A share that forgets the first start, or the steps between its last checkpoint and the kill, flatters the run."""
    lines = []
    clock.now += 20
    run(clock, lines, 0, 80, 100.0)  # Killed after step 80, its checkpoint at step 50.
    again, clock.now = clock.now, clock.now + 15
    measured = run(clock, lines, 50, 100, again)
    found = measured.summary()
    assert found["seconds"] == {
        "start": 35.0, "steps": 90.0, "validation": 8.0, "checkpoints": 2.0, "lost": 32.0, "data_wait": 10.0,
    }  # fmt: skip
    # The two seconds of the first start's checkpoint came with the lost line after it.
    assert sum(found["seconds"].values()) == clock.now - 100.0
    assert found["share"] == pytest.approx(90 / 177)
    assert found["flops_utilization"] == pytest.approx(0.5)
    assert lines[-1]["goodput"] == pytest.approx(90 / 175)  # Before the last checkpoint.


def test_a_rollback_loses_its_steps(clock):
    measured, lines = Goodput(started_at=100.0), []
    for step in (10, 20, 30):
        lines.append(measured.line(step, {"seconds": 10.0}))
    measured.rewind(10)
    assert measured.line(20, {"seconds": 10.0}) == {"lost_seconds": 20.0, "goodput": 0.5}
    assert lines[2]["goodput"] == 1.0


def test_the_steps_since_the_last_line_are_lost_too(clock):
    """A divergence is found when a line is due, before it is written; its steps used to be in no figure."""
    measured = Goodput(started_at=100.0)
    clock.now += 3
    measured.begin()
    for step in (10, 20):
        clock.now += 10
        measured.line(step, {"seconds": 10.0})
        with measured.checkpointing():
            clock.now += 1
    clock.now += 10  # Steps 21 to 30, whose line is not written, and a second to go back.
    clock.now += 1
    measured.rewind(10)
    assert measured.summary()["seconds"]["lost"] == 10 + 1 + 10 + 1  # Line 20 has the first checkpoint's second.
    clock.now += 10
    measured.line(20, {"seconds": 10.0})
    assert sum(measured.summary()["seconds"].values()) == clock.now - 100.0
