"""How a recipe reaches an optimizer: the learning rate over the steps, by depth and by name."""

from typing import get_args

import keras
import pytest
from tiny import tiny_config

from keras_bert.config.training import OptimizerConfig, Schedule
from keras_bert.core.errors import UserError
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.training.optimizer import make_optimizer, matches, rate_factors
from keras_bert.training.schedules import DECAYS, TimedWarmupDecay, WarmupDecay
from keras_bert.training.variable_names import part_of, trainable_names


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


@pytest.mark.parametrize(
    ("settings", "warmup"),
    [({"warmup_steps": 3}, 3), ({"warmup_steps": 0, "warmup_share": 0.06}, 30), ({"warmup_steps": 0}, 0)],
)
def test_a_warm_up_is_so_many_steps_or_else_a_share_of_the_run(settings, warmup):
    """Otherwise a recipe for any number of steps would have a warm-up that fits only one."""
    assert make_optimizer(OptimizerConfig(**settings), 500)._learning_rate.warmup_steps == warmup


@pytest.fixture(scope="module")
def model():
    return BertForPreTraining(tiny_config())


def factors(model, **settings):
    names = trainable_names(model)
    return dict(zip(names, rate_factors(OptimizerConfig(**settings), names), strict=True))


def test_every_variable_has_a_name_and_a_part(model):
    """One without would silently keep the learning rate of the heads."""
    names = trainable_names(model)
    assert len(set(names)) == len(names) == len(model.trainable_variables)
    parts = ["embeddings", "block_0", "block_1", "pooler", "mlm_head", "nsp_head"]
    assert sorted({part_of(name) for name in names}) == sorted(parts)


def test_the_rate_falls_with_the_distance_from_the_heads(model):
    found = factors(model, layer_decay=0.5)
    assert found["encoder.embeddings.word_embeddings"] == found["encoder.embeddings.layer_norm.gamma"] == 0.125
    assert found["encoder.blocks.0.attention.query.kernel"] == 0.25
    assert found["encoder.blocks.1.output_dense.bias"] == 0.5
    assert found["encoder.pooler.dense.kernel"] == found["mlm_head.bias"] == found["nsp_head.classifier.kernel"] == 1.0


def test_patterns_multiply_each_other_and_the_depth(model):
    found = factors(model, layer_decay=0.5, rates={"embeddings": 0.1, "word_embeddings": 2, "blocks.1": 0.0})
    assert found["encoder.embeddings.word_embeddings"] == pytest.approx(0.025)
    assert found["encoder.embeddings.position_embeddings"] == pytest.approx(0.0125)
    assert found["encoder.blocks.0.intermediate.kernel"] == 0.25
    assert found["encoder.blocks.1.intermediate.kernel"] == 0.0


@pytest.mark.parametrize(
    ("name", "pattern", "expected"),
    [
        ("encoder.blocks.1.output_dense.bias", "blocks.1", True),
        ("encoder.blocks.10.output_dense.bias", "blocks.1", False),
        ("encoder.blocks.10.output_dense.bias", "blocks.1*", True),
        ("encoder.blocks.1.attention.key.bias", "attention.*.bias", True),
        ("encoder.blocks.1.attention.key.bias", "bias", True),
        ("encoder.embeddings.word_embeddings", "word", False),
    ],
)
def test_a_pattern_is_whole_steps_of_a_name(name, pattern, expected):
    assert matches(name, pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "nearest"),
    [("embedings", "embeddings"), ("block.0", "blocks.0"), ("qqq", "embeddings, blocks, pooler, mlm_head")],
)
def test_a_pattern_without_a_match_is_refused_with_the_nearest_names(model, pattern, nearest):
    """It would train with the full rate, and nobody would know."""
    settings = OptimizerConfig(rates={pattern: 0.1})
    with pytest.raises(
        UserError, match=f"optimizer.rates: needs patterns .* Received: '{pattern}'.* names are {nearest}"
    ):
        make_optimizer(settings, 10, model=model)


def test_the_recipe_reaches_the_optimizer(model):
    settings = {"rates": {"embeddings": 0.1}, "layer_decay": 0.9, "weight_average": 0.99, "weight_decay": 0.3}
    for more in ({"name": "lamb", "beta_2": 0.98}, {"name": "adafactor", "first_moment": True}, {}):
        optimizer = make_optimizer(OptimizerConfig(**settings, **more), 10, model=model)
        assert type(optimizer).__name__.lower() == more.get("name", "adamw")
        assert (optimizer.decay, optimizer.weight_average, optimizer.beta_1) == (0.3, 0.99, 0.9)
        assert optimizer.rate_factors == tuple(factors(model, rates={"embeddings": 0.1}, layer_decay=0.9).values())
    adamw = make_optimizer(OptimizerConfig(learning_rate=0.5, warmup_steps=2, beta_1=0.8, beta_2=0.9), 10)
    assert (adamw.beta_1, adamw.beta_2, float(adamw.learning_rate)) == (0.8, 0.9, 0.25)
    lamb = make_optimizer(OptimizerConfig(name="lamb", bias_correction=False, epsilon=1e-5), 10)
    assert (lamb.bias_correction, lamb.epsilon) == (False, 1e-5)
    adafactor = make_optimizer(OptimizerConfig(name="adafactor", relative_step=True), 10)
    assert (adafactor.relative_step, adafactor.beta_1) == (True, 0.0)
