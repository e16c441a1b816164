"""The learning rate over the steps, and what of a recipe reaches AdamW."""

from typing import get_args

import keras
import pytest

from keras_bert.config.training import OptimizerConfig, Schedule
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.schedules import DECAYS, TimedWarmupDecay, WarmupDecay


def rates(steps, **options):
    schedule = WarmupDecay(**options)
    return [round(float(schedule(step)), 6) for step in range(steps)]


def test_linear_warmup_then_linear_decay():
    received = rates(13, peak=2.0, warmup_steps=4, total_steps=12)
    assert received == [0.5, 1.0, 1.5, 2.0, 2.0, 1.75, 1.5, 1.25, 1.0, 0.75, 0.5, 0.25, 0.0]


@pytest.mark.parametrize(
    ("decay", "expected"),
    [
        ("cosine", [1.0, 1.0, 0.853553, 0.5, 0.146447, 0.0]),
        ("polynomial", [1.0, 1.0, 0.5625, 0.25, 0.0625, 0.0]),
        ("constant", [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_the_other_ways_down(decay, expected):
    received = rates(8, peak=1.0, warmup_steps=2, total_steps=6, decay=decay)
    assert received == [0.5, *expected, expected[-1]]


@pytest.mark.parametrize("warmup", [0, 12])
def test_no_warmup_and_nothing_but_warmup(warmup):
    assert all(0.0 < rate <= 1.0 for rate in rates(12, peak=1.0, warmup_steps=warmup, total_steps=12))


@pytest.mark.parametrize(
    ("warmup", "step", "share", "expected"),
    [
        ({"warmup_steps": 4}, 1, 0.5, 0.25),  # Half risen by steps, half fallen by the clock.
        ({"warmup_steps": 4, "warmup_share": 0.2}, 1, 0.2, 0.5),  # The time of the rise is over, its steps are not.
        ({"warmup_steps": 4, "warmup_share": 0.2}, 40, 0.05, 0.25),  # The other way round.
        ({"warmup_steps": 4, "warmup_share": 0.2}, 40, 0.6, 0.5),
        ({"warmup_steps": 0, "warmup_share": 0.2}, 0, 0.1, 0.5),
        ({"warmup_steps": 4, "warmup_share": 0.2}, 40, 1.0, 0.0),
    ],
)
def test_by_the_clock_it_rises_no_faster_than_by_steps_and_falls_over_the_rest(warmup, step, share, expected):
    schedule = TimedWarmupDecay(keras.Variable(share), peak=1.0, **warmup)
    assert float(schedule(step)) == pytest.approx(expected)


def test_the_rate_stays_at_its_peak_until_the_share_in_which_it_falls():
    received = rates(13, peak=2.0, warmup_steps=2, total_steps=12, decay_share=0.4)
    assert received == [1.0, 2.0, *[2.0] * 7, 1.5, 1.0, 0.5, 0.0]
    timed = TimedWarmupDecay(keras.Variable(0.8), peak=1.0, warmup_steps=1, decay_share=0.4)
    assert float(timed(50)) == pytest.approx(0.5)


def test_every_schedule_of_the_recipe_exists():
    assert set(get_args(Schedule)) == set(DECAYS)


def test_the_recipe_reaches_the_optimizer():
    settings = OptimizerConfig(
        learning_rate=0.5, warmup_steps=2, weight_decay=0.3, beta_1=0.8, beta_2=0.9, epsilon=1e-4
    )
    optimizer = make_optimizer(settings, total_steps=10)
    assert (optimizer.decay, optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.3, 0.8, 0.9, 1e-4)
    assert float(optimizer.learning_rate) == 0.25


@pytest.mark.parametrize(
    ("settings", "warmup"),
    [({"warmup_steps": 3}, 3), ({"warmup_steps": 0, "warmup_share": 0.06}, 30), ({"warmup_steps": 0}, 0)],
)
def test_a_warm_up_is_so_many_steps_or_else_a_share_of_the_run(settings, warmup):
    """A recipe for any number of steps would have a warm-up for one number only."""
    assert make_optimizer(OptimizerConfig(**settings), 500)._learning_rate.warmup_steps == warmup
