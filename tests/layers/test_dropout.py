"""Dropout's bits: the right share, from the key alone, different wherever they must differ."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.layers.dropout import Dropout, counter_bits, dropout_key
from keras_bert.training.step import dropout_key_of, stateless_bits

SHAPE = (64, 128, 16)


def mask(key, bits, layers=1, rate=0.1, part=0):
    ones = tf.ones(SHAPE)
    with dropout_key(key, bits, part):
        outputs = [Dropout(rate)(ones, training=True) for _ in range(layers)]
    return [output.numpy() for output in outputs]


@pytest.mark.parametrize("bits", [counter_bits, stateless_bits])
def test_share_scale_and_repeatability(bits):
    key = tf.constant([3, 5], tf.uint32)
    (first,) = mask(key, bits)
    (again,) = mask(key, bits)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(first[first > 0], 1 / 0.9, rtol=1e-6)
    assert abs((first == 0).mean() - 0.1) < 0.003
    for axis in range(3):  # no row or column is favoured
        others = tuple(other for other in range(3) if other != axis)
        assert np.abs((first == 0).mean(axis=others) - 0.1).max() < 0.06


@pytest.mark.parametrize("bits", [counter_bits, stateless_bits])
def test_masks_of_layers_steps_and_parts_are_unrelated(bits):
    """Two masks agree on a dropped element as often as chance has it: 1% of all."""
    masks = []
    for step in range(3):
        for part in range(2):
            masks += mask(dropout_key_of(1, tf.constant(step, tf.int64)), bits, layers=2, part=tf.constant(part))
    masks += mask(dropout_key_of(2, tf.constant(0, tf.int64)), bits)
    dropped = np.stack([(values == 0).ravel() for values in masks]).astype("float64")
    correlation = np.corrcoef(dropped) - np.eye(len(dropped))
    assert np.abs(correlation).max() < 0.02
    # Neighbours within a mask and a shift between masks are unrelated too.
    assert abs(np.corrcoef(dropped[0][:-1], dropped[0][1:])[0, 1]) < 0.02
    assert abs(np.corrcoef(dropped[0][:-1], dropped[2][1:])[0, 1]) < 0.02


@pytest.mark.parametrize("shape", [(8, 6), (9, 7, 3)])
@pytest.mark.parametrize("bits", [counter_bits, stateless_bits])
def test_parts_in_a_row_are_the_whole(bits, shape):
    """With a key for each part, accumulation and replicas used to change what a run with dropout learns.

    An odd number of elements ends within a block of the generator. Parts given as a Python int all
    used to get the first one's masks.
    """
    key, whole = tf.constant([3, 5], tf.uint32), bits(tf.constant([3, 5], tf.uint32), 2, (4 * shape[0], *shape[1:]))
    static = [bits(key, 2, shape, tf.constant(part)) for part in range(4)]
    rows = tf.function(lambda part, rows: bits(key, 2, (rows, *shape[1:]), part), autograph=False)
    dynamic = [rows(tf.constant(part), tf.constant(shape[0])) for part in range(4)]
    np.testing.assert_array_equal(np.concatenate(static), whole)
    np.testing.assert_array_equal(np.concatenate(dynamic), whole)
    np.testing.assert_array_equal(np.concatenate([bits(key, 2, shape, part) for part in range(4)]), whole)


def test_bits_are_the_same_compiled_and_with_a_dynamic_shape():
    key = tf.constant([3, 5], tf.uint32)
    eager = counter_bits(key, 1, (4, 6)).numpy()
    compiled = tf.function(lambda key: counter_bits(key, 1, (4, 6)), jit_compile=True, autograph=False)
    dynamic = tf.function(lambda key, rows: counter_bits(key, 1, (rows, 6)), autograph=False)
    np.testing.assert_array_equal(compiled(key), eager)
    np.testing.assert_array_equal(dynamic(key, tf.constant(4)), eager)


def test_outside_a_step_keras_seeds_it_and_inference_is_untouched():
    layer, ones = Dropout(0.5), tf.ones((8, 64))
    assert not np.array_equal(layer(ones, training=True), layer(ones, training=True))
    np.testing.assert_array_equal(layer(ones, training=False), ones)
