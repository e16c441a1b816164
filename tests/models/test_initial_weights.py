"""First values of weights, each by itself and by its definition; and positions that are never trained."""

import dataclasses
import json
import math

import numpy as np
import pytest
from tiny import VOCABULARY, random_weights, tiny_config

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.config.initialization import InitializationConfig
from keras_bert.core.errors import UserError
from keras_bert.inference.loading import load
from keras_bert.layers.embeddings import sinusoids
from keras_bert.models.albert.kind import AlbertConfig
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.encoder_decoder import EncoderDecoder
from keras_bert.models.initial_weights import apply_initialization, mimetic_kernels, set_new_words
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.t5.kind import T5Config
from keras_bert.models.tensor_names import model_variables
from keras_bert.tasks.pretraining.batch_sources import unigram_nats

COUNTS = np.arange(60)
NATS = unigram_nats(COUNTS)
VECTORS = np.random.default_rng(0).normal(1.0, 3.0, (60, 16)).astype("float32")
VECTORS[:7] = 0.0


@pytest.fixture(scope="module")
def model():
    return BertForPreTraining(tiny_config())


@pytest.mark.parametrize(
    ("settings", "changed"),
    [
        ({}, ()),
        ({"word_embeddings": "corpus"}, ("word_embeddings.weight",)),
        ({"position_embeddings": "sinusoidal"}, ("position_embeddings.weight",)),
        ({"attention": "mimetic"}, ("query.weight", "key.weight")),
        ({"decoder_bias": "unigram"}, ("predictions.bias",)),
    ],
)
def test_each_setting_changes_its_own_weights_alone(model, settings, changed):
    before = [(name.huggingface.name, variable, variable.numpy()) for name, variable in model_variables(model)]
    apply_initialization(model, InitializationConfig(**settings), NATS, VECTORS, seed=1)
    for name, variable, value in before:
        assert (not np.array_equal(value, variable.numpy())) == name.endswith(changed or ("none",)), name
        variable.assign(value)


def test_word_vectors_have_the_spread_of_the_other_rows(model):
    before = model.encoder.embeddings.word_embeddings.numpy()
    apply_initialization(model, InitializationConfig(word_embeddings="corpus"), None, VECTORS, seed=1)
    table = model.encoder.embeddings.word_embeddings.numpy()
    np.testing.assert_array_equal(table[:7], before[:7])
    assert table[7:].std() == pytest.approx(0.02, rel=1e-4)
    np.testing.assert_allclose(table[7:].mean(axis=0), 0.0, atol=1e-6)
    centred = VECTORS[7:] - VECTORS[7:].mean(axis=0)
    np.testing.assert_allclose(table[7:] / centred, table[7, 0] / centred[0, 0], rtol=1e-3)


def test_word_vectors_of_a_t5_have_the_spread_of_its_own():
    """A T5's embeddings start with a deviation of 1, of which `initializer_range` is a fiftieth."""
    model = EncoderDecoder(T5Config(60, 16, 1, 2, 8, head_size=8, initializer_factor=0.5))
    apply_initialization(model, InitializationConfig(word_embeddings="corpus"), None, VECTORS, seed=1)
    assert model.encoder.embeddings.word_embeddings.numpy()[7:].std() == pytest.approx(0.5, rel=1e-4)


def test_the_bias_is_the_unigram(model):
    apply_initialization(model, InitializationConfig(decoder_bias="unigram"), NATS, None, seed=1)
    shares = np.exp(model.mlm_head.bias.numpy())
    np.testing.assert_allclose(shares, (COUNTS + 1) / (COUNTS + 1).sum(), rtol=1e-5)


def test_positions_are_sines_and_cosines():
    table = sinusoids(50, 9)
    for position, column in ((0, 0), (0, 1), (7, 4), (49, 8), (31, 7)):
        angle = position / 10_000 ** (2 * (column // 2) / 9)
        assert table[position, column] == pytest.approx((math.cos if column % 2 else math.sin)(angle), abs=1e-6)


def test_equal_vectors_attend_to_each_other():
    """In every head: the product of its query and key is the part of noise + identity that its rank can hold."""
    query, key = mimetic_kernels(64, 4, (1, 0))
    products = []
    for head in range(4):
        columns = slice(16 * head, 16 * head + 16)
        product = query[:, columns] @ key[:, columns].T
        assert np.linalg.matrix_rank(product, tol=1e-3) == 16
        assert np.trace(product) > 3 * np.abs(product - np.diag(np.diag(product))).sum(axis=1).mean()
        products.append(product)
    assert not np.allclose(products[0], products[1])
    again = mimetic_kernels(64, 4, (1, 0))
    assert np.array_equal(query, again[0]) and not np.array_equal(query, mimetic_kernels(64, 4, (1, 1))[0])


def test_a_new_word_is_the_mean_of_its_pieces_as_they_were():
    """Rows are read before any is written: two words may swap their places."""
    model = BertForPreTraining(tiny_config(tie_word_embeddings=False))
    random_weights(model)
    variables = (model.encoder.embeddings.word_embeddings, model.mlm_head.bias, model.mlm_head.decoder)
    before = [variable.numpy() for variable in variables]
    set_new_words(model, {3: [7, 8, 9], 5: [6], 6: [5]})
    for old, variable in zip(before, variables, strict=True):
        new = variable.numpy()
        np.testing.assert_allclose(new[3], (old[7] + old[8] + old[9]) / 3, rtol=1e-5)
        np.testing.assert_array_equal(new[[5, 6]], old[[6, 5]])
        others = [row for row in range(60) if row not in (3, 5, 6)]
        np.testing.assert_array_equal(new[others], old[others])


CONFIGS = [
    tiny_config(positions="sinusoidal"),
    AlbertConfig(**{**dataclasses.asdict(tiny_config(positions="sinusoidal")), "embedding_size": 8}),
]


@pytest.mark.parametrize("config", CONFIGS)
def test_the_table_is_fixed_and_survives_files(config, tmp_path):
    model = BertForPreTraining(config)
    table = model.encoder.embeddings.position_embeddings
    assert all(variable is not table for variable in model.trainable_variables)
    expected = sinusoids(24, config.embedding_width)
    np.testing.assert_allclose(np.array(table), expected * 0.02 / np.sqrt(0.5), rtol=1e-6)
    folder = str(tmp_path / "model")
    write_model_folder(folder, model, VOCABULARY, lower_case=True)
    again = load(folder)
    assert again.config == config and not again.report.made_new and not again.report.unused
    np.testing.assert_array_equal(again.encoder.embeddings.position_embeddings, table)
    assert len(again.model.trainable_variables) == len(model.trainable_variables)


def test_learned_positions_are_not_mentioned_in_files(tmp_path):
    folder = str(tmp_path / "model")
    write_model_folder(folder, BertForPreTraining(tiny_config()), VOCABULARY, lower_case=True)
    assert "positions" not in json.loads((tmp_path / "model" / "config.json").read_text("utf-8"))
    assert open_model_folder(folder).config.positions == "learned"


def test_other_values_are_refused():
    with pytest.raises(UserError, match="positions: needs one of learned, sinusoidal"):
        BertConfig.from_mapping({"positions": "rotary"})
