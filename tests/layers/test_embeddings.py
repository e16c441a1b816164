"""The embedding sum, and what lies outside its tables."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.layers.dropout import dropout_key
from keras_bert.layers.embeddings import BertEmbeddings


@pytest.fixture(scope="module")
def layer():
    layer = BertEmbeddings(vocab_size=11, hidden_size=6, max_position_embeddings=8, dropout_rate=0.0)
    layer.build((None, None))
    return layer


def test_sum_equals_one_dense_layer_over_concatenated_one_hots(layer):
    """The textbook identity: three tables stacked are one dense layer's kernel."""
    rng = np.random.default_rng(0)
    ids, types = rng.integers(0, 11, (3, 5)), rng.integers(0, 2, (3, 5))
    positions = np.broadcast_to(np.arange(5), (3, 5))
    one_hots = np.concatenate([np.eye(11)[ids], np.eye(8)[positions], np.eye(2)[types]], axis=-1)
    kernel = np.concatenate([layer.word_embeddings, layer.position_embeddings, layer.token_type_embeddings])
    expected = layer.layer_norm(tf.constant(one_hots @ kernel, tf.float32))
    received = layer(tf.constant(ids, tf.int32), tf.constant(types, tf.int32))
    np.testing.assert_allclose(received, expected, rtol=1e-5, atol=1e-6)


def test_a_model_of_one_segment_reads_pairs_in_it():
    """A pair used to fail with TensorFlow's own error, after a clean export."""
    layer = BertEmbeddings(vocab_size=11, hidden_size=6, max_position_embeddings=8, type_vocab_size=1, dropout_rate=0.0)
    ids, types = tf.constant([[1, 2, 3]]), tf.constant([[0, 1, 1]])
    np.testing.assert_array_equal(layer(ids, types), layer(ids, tf.zeros_like(types)))


@pytest.mark.parametrize(
    ("ids", "types", "message"),
    [
        ([[1, 11]], [[0, 0]], "input_word_ids.*Received: 11"),
        ([[1, -1]], [[0, 0]], "Received: -1"),
        ([[1, 2]], [[0, 2]], "input_type_ids"),
    ],
)
def test_an_id_out_of_range_is_refused(layer, ids, types, message):
    with pytest.raises(ValueError, match=message):
        layer(tf.constant(ids), tf.constant(types))


@pytest.mark.parametrize(("ids", "types"), [([[1, 11]], [[0, 0]]), ([[1, -1]], [[0, 0]]), ([[1, 2]], [[0, 2]])])
def test_an_id_out_of_range_cannot_pass_silently_through_xla(layer, ids, types):
    """XLA and GPUs silently gather another row; the vector must show it."""
    compiled = tf.function(lambda ids, types: layer(ids, types), jit_compile=True, autograph=False)
    vectors = compiled(tf.constant(ids), tf.constant(types)).numpy()
    assert np.isnan(vectors[0, 1]).all() and np.isfinite(vectors[0, 0]).all()


def test_a_sequence_past_the_last_position_is_refused(layer):
    with pytest.raises(ValueError, match=r"at most max_position_embeddings \(8\)"):
        layer(tf.zeros((1, 9), tf.int32), tf.zeros((1, 9), tf.int32))


def test_a_dynamic_sequence_past_the_last_position_is_refused(layer):
    function = tf.function(
        lambda ids: layer(ids, ids), input_signature=[tf.TensorSpec([None, None], tf.int32)], autograph=False
    )
    assert function(tf.zeros((1, 8), tf.int32)).shape == (1, 8, 6)
    with pytest.raises(tf.errors.InvalidArgumentError):
        function(tf.zeros((1, 9), tf.int32))


class TestRandomPositions:
    """Rows that begin at a random position (SHAPE), in a training step."""

    @pytest.fixture
    def shifted(self, layer):
        layer.random_within = 8
        yield layer
        layer.random_within = 0

    def trained(self, layer, ids, part=0, jit_compile=False):
        @tf.function(jit_compile=jit_compile, autograph=False)
        def outputs(ids):
            with dropout_key(tf.constant([3, 5], tf.uint32), part=part):
                return layer(ids, tf.zeros_like(ids), training=True)

        return outputs(tf.constant(ids, tf.int32)).numpy()

    def firsts(self, layer, ids, received):
        """Where each row begins: the position that gives what was received."""
        longest = layer.layer_norm(
            tf.gather(layer.word_embeddings, ids[:, None, :])
            + tf.gather(layer.position_embeddings, np.arange(9 - ids.shape[1])[:, None] + np.arange(ids.shape[1]))
            + layer.token_type_embeddings[0]
        )
        matches = np.isclose(longest, received[:, None], rtol=1e-5, atol=1e-6).all(axis=(2, 3))
        assert (matches.sum(axis=1) == 1).all(), "A row's positions do not follow each other, or leave the table."
        return matches.argmax(axis=1)

    @pytest.mark.parametrize("jit_compile", [False, True])
    def test_each_row_begins_where_it_fits(self, shifted, jit_compile):
        ids = np.random.default_rng(0).integers(0, 11, (60, 5))
        firsts = self.firsts(shifted, ids, self.trained(shifted, ids, jit_compile=jit_compile))
        assert set(firsts) == {0, 1, 2, 3}

    def test_parts_begin_where_the_rows_of_the_global_batch_do(self, shifted):
        """Two replicas would train other positions than one."""
        ids = np.random.default_rng(0).integers(0, 11, (6, 5))
        parts = [self.trained(shifted, ids[3 * part :][:3], tf.constant(part)) for part in (0, 1)]
        np.testing.assert_allclose(np.concatenate(parts), self.trained(shifted, ids), rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize("seq", [5, 8])
    def test_predictions_and_the_longest_rows_begin_at_the_first(self, shifted, seq):
        ids = tf.constant(np.random.default_rng(0).integers(0, 11, (60, seq)), tf.int32)
        received = shifted(ids, tf.zeros_like(ids)).numpy() if seq == 5 else self.trained(shifted, ids)
        shifted.random_within = 0
        np.testing.assert_array_equal(received, shifted(ids, tf.zeros_like(ids)))
