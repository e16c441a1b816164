"""The lengths that batches are padded to, and which strings of a batch are padding."""

import itertools
from collections.abc import Sequence

import tensorflow as tf


def padded_lengths(longest: int, finest: int) -> list[int]:
    """The lengths that batches are padded to: four between successive powers of two, the last one `longest`.

    So less than a quarter of the computation goes into padding beyond the longest text.

    Args:
        longest: the maximum number of tokens of a text.
        finest: the smallest length, and the distance between the smallest lengths.
    """
    lengths, step = [finest], finest
    while lengths[-1] < longest:
        step = step * 2 if lengths[-1] == 8 * step else step
        lengths.append(lengths[-1] + step)
    return [*lengths[:-1], longest]


def doubling_lengths(longest: int) -> list[int]:
    """16, 32, 64 and so on up to `longest`: the few lengths that XLA compiles and that a server warms up."""
    return [*itertools.takewhile(lambda length: length < longest, (2**power for power in itertools.count(4))), longest]


def padded_length(lengths: Sequence[int], needed: tf.Tensor) -> tf.Tensor:
    """The first of the ascending `lengths` that is at least `needed` (int32 scalar), or else the last."""
    place = tf.searchsorted(tf.constant(lengths[:-1], tf.int32), needed[tf.newaxis])[0]
    return tf.gather(tf.constant(lengths, tf.int32), place)


def filled(strings: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """`(is_there [batch, n] bool, counts [batch] int32)` of strings `[batch, n]` padded with "" at the end."""
    number = tf.range(1, tf.shape(strings)[1] + 1)
    # The maximum over zero columns is the smallest integer.
    counts = tf.maximum(tf.reduce_max(tf.where(tf.not_equal(strings, ""), number, 0), axis=1), 0)
    return number <= counts[:, tf.newaxis], counts
