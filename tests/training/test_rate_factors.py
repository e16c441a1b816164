"""Learning rates by depth and by name, and what is said of a pattern that matches nothing."""

import pytest
from tiny import tiny_config

from keras_bert.config.training import OptimizerConfig
from keras_bert.core.errors import UserError
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.training.optimizer import make_optimizer, matches, rate_factors
from keras_bert.training.variable_names import part_of, trainable_names


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
    lamb = make_optimizer(OptimizerConfig(name="lamb", bias_correction=False, epsilon=1e-5), 10)
    assert (lamb.bias_correction, lamb.epsilon) == (False, 1e-5)
    adafactor = make_optimizer(OptimizerConfig(name="adafactor", relative_step=True), 10)
    assert (adafactor.relative_step, adafactor.beta_1) == (True, 0.0)
