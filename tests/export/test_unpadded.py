"""The encoder on real tokens alone gives what the encoder gives."""

import numpy as np
import pytest
import tensorflow as tf
from tiny import random_weights, without_dropout

from keras_bert.export.network import encode
from keras_bert.models.bert.encoder import BertEncoder


@pytest.mark.parametrize("keeps_padding", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_act": "gelu"},
        {"hidden_act": "gelu_new"},
        {"hidden_act": "relu"},
        {"attention": "causal"},
        {"type_vocab_size": 1},
    ],
)
def test_it_is_the_encoder(keeps_padding, changes):
    """Padding at the end and inside, both segments, a full row and one of a single token."""
    encoder = BertEncoder(without_dropout(**changes))
    random_weights(encoder)
    rng = np.random.default_rng(0)
    mask = (np.arange(12) < np.array([[12], [5], [1], [8]])).astype("int32")
    mask[3, 4] = 0
    inputs = {
        "input_word_ids": rng.integers(0, 60, mask.shape).astype("int32"),
        "input_mask": mask,
        "input_type_ids": rng.integers(0, 2, mask.shape).astype("int32"),
    }
    expected, received = encoder(inputs), encode(encoder, inputs, keeps_padding)
    real = mask == 1
    tolerance = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(
        received["sequence_output"].numpy()[real], expected["sequence_output"].numpy()[real], **tolerance
    )
    assert not received["sequence_output"].numpy()[~real].any()
    np.testing.assert_allclose(received["pooled_output"], expected["pooled_output"], **tolerance)


def test_padding_is_not_computed():
    """A long text must not make the short ones beside it as costly: the largest matrices have a row a real token."""
    encoder = BertEncoder(without_dropout())
    mask = tf.constant((np.arange(20) < np.array([[20], [2], [2]])).astype("int32"))
    rows = []
    dense = encoder.blocks[0].intermediate

    def counting(states, call=dense.call):
        rows.append(int(states.shape[0]))
        return call(states)

    dense.call = counting
    encode(encoder, {"input_word_ids": mask, "input_mask": mask, "input_type_ids": mask * 0})
    assert rows == [24]
