"""How far a run has come, by steps and by the clock."""

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.training.budget import StepBudget


def test_shares_that_are_rounded_lose_no_step():
    """A run that ended one step early never counted as finished."""
    steps, shares = 2_000_000, [0.333333, 0.333333, 0.3333335]
    PretrainConfig.from_mapping({"phases": [{"share": share} for share in shares], "training": {"steps": steps}})
    budget = StepBudget(steps, shares)
    assert [budget.bounds(phase) for phase in range(3)] == [(0, 666_666), (666_666, 1_333_332), (1_333_332, steps)]
    assert not budget.advance(steps - 1) and budget.advance(steps)
