"""Random bits as a hash of (seed, epoch, example, counter), in the graph.

A draw then does not depend on batches, threads or where a run was resumed. `tf.random.stateless_*` cannot do that,
because it takes one seed for a whole tensor.
"""

import tensorflow as tf

_GOLDEN = 0x9E3779B97F4A7C15
_MASK_64 = 2**64 - 1


def example_keys(seed: int, epoch: tf.Tensor | int, example_ids: tf.Tensor) -> tf.Tensor:
    """A 64-bit key for each example: uint64 [batch]. Neighbouring seeds, epochs and ids get unrelated keys."""
    key = _mix(uint64((seed + _GOLDEN) & _MASK_64))
    for part in (epoch, example_ids):
        key = _mix(key + uint64(_GOLDEN) + tf.cast(part, tf.uint64))
    return key


def random_bits(keys: tf.Tensor, counters: tf.Tensor) -> tf.Tensor:
    """The entries `counters` (int32 [batch or 1, n]) of each key's SplitMix64 sequence: uint64 [batch, n]."""
    return _mix(keys[:, None] + tf.cast(counters + 1, tf.uint64) * uint64(_GOLDEN))


def high_bits(bits: tf.Tensor) -> tf.Tensor:
    """The upper half of each uint64: int64 below 2**32."""
    return tf.cast(tf.bitwise.right_shift(bits, uint64(32)), tf.int64)


def low_bits(bits: tf.Tensor) -> tf.Tensor:
    """The lower half of each uint64: int64 below 2**32."""
    return tf.cast(tf.bitwise.bitwise_and(bits, uint64(2**32 - 1)), tf.int64)


def non_negative(bits: tf.Tensor) -> tf.Tensor:
    """All but the lowest bit of each uint64: int64, at least 0."""
    return tf.cast(tf.bitwise.right_shift(bits, uint64(1)), tf.int64)


def uint64(value: int) -> tf.Tensor:
    """A scalar constant."""
    return tf.constant(value, tf.uint64)


def _mix(bits: tf.Tensor) -> tf.Tensor:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every output bit depends on every input bit."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = tf.bitwise.bitwise_xor(bits, tf.bitwise.right_shift(bits, uint64(shift))) * uint64(factor)
    return tf.bitwise.bitwise_xor(bits, tf.bitwise.right_shift(bits, uint64(31)))
