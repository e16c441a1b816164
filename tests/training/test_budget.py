"""How far a run has come, by steps and by the clock."""

from types import SimpleNamespace

import pytest
import tensorflow as tf

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.training.budget import StepBudget, TimeBudget, make_budget
from keras_bert.training.engine import Engine
from keras_bert.training.schedules import TimedWarmupDecay


def test_shares_that_are_rounded_lose_no_step():
    """A run that ended one step early would never count as finished."""
    steps, shares = 2_000_000, [0.333333, 0.333333, 0.3333335]
    PretrainConfig.from_mapping({"phases": [{"share": share} for share in shares], "training": {"steps": steps}})
    budget = StepBudget(steps, shares)
    assert [budget.bounds(phase) for phase in range(3)] == [(0, 666_666), (666_666, 1_333_332), (1_333_332, steps)]
    assert not budget.advance(steps - 1) and budget.advance(steps)


def test_a_resumed_run_knows_the_time_it_has_spent():
    """Even before its first step: progress counts from there, and `jit_compile: auto` asks what is left."""
    budget = TimeBudget(2.0, [1.0])

    def restore_newest():
        budget._kept_seconds.assign(90.0)
        return 7

    checkpoints = SimpleNamespace(restore_newest=restore_newest)
    engine = Engine(tf.distribute.get_strategy(), None, None, budget, None, None, checkpoints)
    bound = []
    run = SimpleNamespace(path="run", bind=bound.append)
    assert engine.start(run, "settings", lambda: None) == 7
    assert bound == ["settings"], "A run that goes on has its new settings from there."
    assert budget.share_done(7) == 0.75 and budget.seconds_left(7, 1.0) == 30.0


def test_time_passes_on_several_devices_as_on_one(mirrored_strategy, monkeypatch):
    """On several GPUs or workers, runs limited by time used to end in a traceback before their first step."""
    now = [0.0]
    for clock in ("monotonic", "process_time"):
        monkeypatch.setattr(f"keras_bert.training.budget.{clock}", lambda: now[0])
    with mirrored_strategy.scope():
        budget = make_budget(2.0, 10, [0.5, 0.5], mirrored_strategy)
    now[0] = 90.0
    assert not budget.advance(7) and budget.bounds(1) == (7, None)
    schedule = TimedWarmupDecay(budget.share, 0.4, warmup_steps=0)
    rates = mirrored_strategy.run(lambda: schedule(0))
    assert [float(rate) for rate in mirrored_strategy.experimental_local_results(rates)] == pytest.approx([0.1, 0.1])
    budget.start()
    assert budget.share_done(7) == 0.75 and budget.phase(7) == 1


def test_time_in_which_a_run_was_halted_does_not_count(monkeypatch):
    """An hour between Ctrl-Z and `fg` would end a run of two hours early, with its rate falling by half at once."""
    now, worked = [0.0], [0.0]
    monkeypatch.setattr("keras_bert.training.budget.monotonic", lambda: now[0])
    monkeypatch.setattr("keras_bert.training.budget.process_time", lambda: worked[0])
    budget, shares = TimeBudget(120.0, [1.0]), []
    for seconds, cpu_seconds in [(720.0, 1400.0), (3600.0, 2.0), (1.0, 0.0), (719.0, 720.0)]:
        now[0] += seconds
        worked[0] += cpu_seconds
        budget.advance(1)
        shares.append(budget.share_done(1))
    assert shares == pytest.approx([0.1, 0.1, 0.1 + 1 / 7200, 0.2])


def test_a_short_run_has_a_curve_and_a_long_one_no_more_lines_than_before():
    """Runs of 20 to 500 steps used to have one to five lines, which is no curve."""

    def lines(steps, per_call=1):
        budget = StepBudget(steps, [1.0])
        return [done for done in range(per_call, steps + 1, per_call) if budget.is_line(done, per_call)]

    assert lines(20) == list(range(1, 21)) and lines(7) == list(range(1, 8))
    assert lines(500) == list(range(25, 501, 25))
    assert lines(10_000) == list(range(100, 10_001, 100))
    assert lines(10_000, 30)[:4] == [120, 210, 300, 420]  # After the call in which one is due.


def test_a_run_limited_by_time_has_a_curve_however_slow_its_steps_are(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("keras_bert.training.budget.monotonic", lambda: now[0])
    budget, lines = TimeBudget(2.0, [1.0]), []
    for done in range(1, 61):
        now[0] += 2.0
        budget.advance(done)
        if budget.is_line(done):
            lines.append(done)
    assert lines == list(range(3, 61, 3))
