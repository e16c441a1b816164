"""The BiLSTM tagger over a frozen encoder."""

import keras
import numpy as np
import pytest
from keras import ops
from shortened import shortened
from tiny import tiny_config

from keras_bert.config.features import FEATURES
from keras_bert.models.albert.kind import AlbertConfig
from keras_bert.tasks.tagging.feature_network import BertFeatureTagger, ScalarMix

CONFIG = tiny_config(num_hidden_layers=5)


def make_tagger(features, **changes):
    keras.utils.set_random_seed(1)
    tagger = BertFeatureTagger(CONFIG, 3, features, **{"lstm_size": 6, **changes})
    random = np.random.default_rng(0)
    for variable in tagger.trainable_variables:
        variable.assign(random.normal(0.0, 0.4, variable.shape))
    return tagger


def make_inputs(lengths=(4, 2), seq=4):
    mask = (np.arange(seq) < np.array(lengths)[:, None]).astype("int32")
    ids = np.random.default_rng(2).integers(5, 60, (len(lengths), 24)).astype("int32")[:, :seq]
    return {"input_word_ids": ids * mask, "input_mask": mask, "input_type_ids": mask * 0}


@pytest.mark.parametrize("features", shortened(FEATURES))
def test_the_features_are_the_encoders_hidden_states(features):
    """Although the encoder has dropout. Given or computed, they lead to the same logits."""
    tagger, inputs = make_tagger(features), make_inputs()
    found = ops.convert_to_numpy(tagger.frozen_features(inputs))
    states = [ops.convert_to_numpy(state) for state in tagger.encoder(inputs, training=False)["hidden_states"]]
    expected = {
        "embeddings": states[:1],
        "second_to_last": states[-2:-1],
        "last": states[-1:],
        "weighted_all": states[1:],
    }.get(features, states[-4:])
    np.testing.assert_allclose(found, np.stack(expected, axis=2), rtol=0, atol=1e-6)
    computed, given = tagger(inputs)["logits"], tagger({**inputs, "features": found})["logits"]
    assert given.shape == (2, 4, 3)
    np.testing.assert_allclose(given, computed, rtol=0, atol=1e-5)


@pytest.mark.parametrize("features", ["concat_last4", "weighted_all"])
def test_padding_changes_nothing(features):
    """A row's logits are the same alone, in a wider batch, and whatever stands at padding."""
    tagger, inputs = make_tagger(features), make_inputs(seq=6)
    states = ops.convert_to_numpy(tagger.frozen_features(inputs))
    states[inputs["input_mask"] == 0] = 1e3
    wide = ops.convert_to_numpy(tagger({**inputs, "features": states})["logits"])
    for row, length in enumerate((4, 2)):
        alone = {name: values[row : row + 1, :length] for name, values in inputs.items()}
        expected = ops.convert_to_numpy(tagger({**alone, "features": states[row : row + 1, :length]})["logits"])
        np.testing.assert_allclose(wide[row : row + 1, :length], expected, rtol=1e-5, atol=1e-5)


def test_every_word_sees_both_sides_through_two_layers():
    """The first token's logits change with the last token, and the last one's with the first."""
    tagger, inputs = make_tagger("last"), make_inputs((4,))
    states = ops.convert_to_numpy(tagger.frozen_features(inputs))
    before = ops.convert_to_numpy(tagger({**inputs, "features": states})["logits"])
    for changed, seen in ((0, -1), (-1, 0)):
        other = states.copy()
        other[:, changed] += 1.0
        after = ops.convert_to_numpy(tagger({**inputs, "features": other})["logits"])
        assert abs(after[0, seen] - before[0, seen]).max() > 1e-5
    widths = [tuple(lstm.forward_layer.cell.kernel.shape) for lstm in tagger.tagger.lstms]
    assert widths == [(16, 24), (12, 24)]


def test_only_the_tagger_learns():
    tagger = make_tagger("weighted_last4")
    names = [variable.path for variable in tagger.trainable_variables]
    assert names and not any("encoder" in name for name in names)
    # The two of the mix, three of each of four LSTMs, the classifier's two.
    assert len(names) == 2 + 12 + 2


def test_the_mix_is_elmos():
    """It begins as the mean, and is gamma times the sum by softmax weights."""
    mix = ScalarMix(3)
    states = np.random.default_rng(0).normal(size=(2, 5, 3, 4)).astype("float32")
    np.testing.assert_allclose(mix(states), states.mean(axis=2), atol=1e-6)
    mix.layer_weights.assign([0.5, -1.0, 2.0])
    mix.gamma.assign([1.5])
    weights = np.exp([0.5, -1.0, 2.0]) / np.exp([0.5, -1.0, 2.0]).sum()
    np.testing.assert_allclose(mix(states), 1.5 * np.einsum("bskh,k->bsh", states, weights), atol=1e-5)


def test_a_copy_made_from_its_config_is_alike():
    tagger = make_tagger("concat_last4")
    copy = BertFeatureTagger.from_config(tagger.get_config())
    assert [tuple(v.shape) for v in copy.weights] == [tuple(v.shape) for v in tagger.weights]


def test_an_albert_has_the_dropout_of_its_other_heads():
    """ALBERT's encoder has none, and its heads 0.1."""
    config = AlbertConfig(60, hidden_size=16, num_attention_heads=2, intermediate_size=32, num_hidden_layers=4)
    assert BertFeatureTagger(config, 3, "concat_last4").tagger.dropout_prob == config.head_dropout_prob == 0.1
