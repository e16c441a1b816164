"""How far a run has come, by steps and by the clock."""

from types import SimpleNamespace

import tensorflow as tf

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.training.budget import StepBudget, TimeBudget
from keras_bert.training.engine import Engine


def test_shares_that_are_rounded_lose_no_step():
    """A run that ended one step early never counted as finished."""
    steps, shares = 2_000_000, [0.333333, 0.333333, 0.3333335]
    PretrainConfig.from_mapping({"phases": [{"share": share} for share in shares], "training": {"steps": steps}})
    budget = StepBudget(steps, shares)
    assert [budget.bounds(phase) for phase in range(3)] == [(0, 666_666), (666_666, 1_333_332), (1_333_332, steps)]
    assert not budget.advance(steps - 1) and budget.advance(steps)


def test_a_resumed_run_knows_the_time_it_has_spent():
    """Before its first step too: the progress counts from there, and `jit_compile: auto` asks what is left."""
    budget = TimeBudget(2.0, [1.0])

    def restore_newest(report):
        budget._kept_seconds.assign(90.0)
        return 7

    checkpoints = SimpleNamespace(restore_newest=restore_newest)
    engine = Engine(tf.distribute.get_strategy(), None, None, budget, None, None, checkpoints)
    bound = []
    run = SimpleNamespace(path="run", bind=bound.append)
    assert engine.start(run, "settings", lambda: None, lambda line: None) == 7
    assert bound == ["settings"], "A run that goes on has its new settings from there."
    assert budget.share_done(7) == 0.75 and budget.seconds_left(7, 1.0) == 30.0
