"""What counts as a fault, and which batches a run leaves out after it."""

import math

import pytest

from keras_bert.config.training import TrainingConfig
from keras_bert.training.budget import PhaseSlice, StepBudget, TimeBudget
from keras_bert.training.rollbacks import (
    LEAST,
    RECENT,
    Divergence,
    DivergenceWatch,
    LossBand,
    SkippedBatches,
    batch_number,
    newly_skipped,
    next_gap,
)

LOSSES = [2.0, 2.1, 1.9, 2.0, 2.2, 1.8, 2.0, 2.1, 1.9, 2.0]


def filled(losses=LOSSES, width=10.0):
    band = LossBand(width)
    for loss in losses:
        band.add(loss, 0)
    return band


def test_the_band_is_the_median_and_the_spread_of_recent_losses():
    """By hand: the median is 2, the deviations' median 0.1."""
    assert filled().edge(0) == pytest.approx(2.0 + 10.0 * 1.4826 * 0.1)
    assert filled([*LOSSES, 90.0]).edge(0) == pytest.approx(filled().edge(0), rel=0.1)  # One outlier moves little.
    assert filled([2.0] * 20).edge(0) == pytest.approx(2.4)  # A plateau has no spread of its own.
    assert filled([9.0] * 100 + [1.0] * RECENT).edge(0) == pytest.approx(1.2)


def test_there_is_no_band_before_there_are_losses_nor_in_a_new_phase_nor_where_it_is_off():
    assert filled(LOSSES[: LEAST - 1]).edge(0) == filled(width=0.0).edge(0) == filled().edge(1) == math.inf
    band = filled()
    band.add(3.0, 1)
    assert band.edge(0) == band.edge(1) == math.inf


def test_a_band_goes_on_from_a_checkpoint():
    assert LossBand(10.0, filled().state()).edge(0) == filled().edge(0)
    assert filled([*LOSSES, math.nan, math.inf]).state() == filled().state()


def result(**more):
    return {"learning_rate": 0.5, **more}


def test_a_checkpoint_since_the_last_good_line_is_not_trusted():
    """Even if a run was stopped since that line. A checkpoint of an older version does not say which line that was."""
    watch = DivergenceWatch(TrainingConfig(), {"band": filled().state()})
    watch.check_loss(12, 2.5, 0, result())
    with pytest.raises(Divergence, match="^Step 16: the loss, 9, is far above .*learning rate of about 0.5.$") as found:
        watch.check_loss(16, 9.0, 0, result())
    assert (found.value.step, found.value.good) == (16, 12)
    with pytest.raises(Divergence) as found:
        DivergenceWatch(TrainingConfig(), watch.state()).check_loss(16, 9.0, 0, result())
    assert found.value.good == 12
    with pytest.raises(Divergence) as found:
        DivergenceWatch(TrainingConfig(), {"band": filled().state()}).check_loss(16, 9.0, 0, result())
    assert found.value.good > 16


def test_what_a_loss_scale_skipped_and_what_nothing_would_be_done_about_is_no_divergence():
    watch = DivergenceWatch(TrainingConfig(), {"band": filled().state()})
    watch.check_loss(100, math.inf, 0, result())
    DivergenceWatch(TrainingConfig(rollbacks=0), {"band": filled().state()}).check_loss(100, 99.0, 0, result())


def test_steps_by_phase():
    budget = StepBudget(10, [0.5, 0.3, 0.2])
    assert budget.phase_slices(3, 10) == [PhaseSlice(0, 3, 2), PhaseSlice(1, 0, 3), PhaseSlice(2, 0, 2)]
    assert budget.phase_slices(6, 7) == [PhaseSlice(1, 1, 1)]
    budget = TimeBudget(1.0, [0.5, 0.5])
    assert budget.phase_slices(2, 7) == [PhaseSlice(0, 2, 5)]  # Its second phase has not begun.


def numbers(skipped, phase, steps):
    return [batch_number(skipped, phase, step) for step in range(steps)]


def test_each_step_gets_the_batch_after_those_that_were_tried():
    """Two faults after the same checkpoint, then one that goes back past it, to a checkpoint that knows of none."""
    first = newly_skipped([PhaseSlice(0, 4, 3)], [], [])
    assert first == [SkippedBatches(0, 4, 3)] and numbers(first, 0, 6) == [0, 1, 2, 3, 7, 8]
    rollbacks = [{"left_out": first}]
    second = newly_skipped([PhaseSlice(0, 4, 2)], rollbacks, rollbacks)
    assert numbers([*first, *second], 0, 6) == [0, 1, 2, 3, 9, 10]
    rollbacks.append({"left_out": second})
    third = newly_skipped([PhaseSlice(0, 2, 4), PhaseSlice(1, 0, 2)], rollbacks, [])
    assert numbers(third, 0, 4) == [0, 1, 11, 12] and numbers(third, 1, 3) == [2, 3, 4]
    assert (next_gap(third, 0, 0), next_gap(third, 0, 2), next_gap(third, 1, 0)) == (2, None, None)


def test_batches_of_a_later_phase_stay_left_out():
    """A fault in the second phase, then one in the first, which goes back past the first fault's checkpoint."""
    first = newly_skipped([PhaseSlice(0, 4, 1), PhaseSlice(1, 0, 2)], [], [])
    second = newly_skipped([PhaseSlice(0, 2, 3)], [{"left_out": first}], [])
    assert numbers(second, 0, 4) == [0, 1, 6, 7] and numbers(second, 1, 2) == [2, 3]
    rollbacks = [{"left_out": second}]
    assert numbers([*second, *newly_skipped([PhaseSlice(0, 2, 1)], rollbacks, rollbacks)], 1, 2) == [2, 3]
