"""Finds the collocations of rows, in the graph."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from keras_bert.data.batches.mask_units import add_up, word_heads
from keras_bert.data.collocations import BASE, MOST_WORDS, flat, hashes, powers, token_codes


class CollocationUnits:
    """Divides rows into collocations and, outside of them, words.

    From left to right, the longest collocation that begins at a word is a unit, and the next unit begins after it. (Of
    nested collocations, the paper takes the longer, as here; of overlapping ones, any.) Collocations are recognized by
    a 64-bit hash; in a text of a billion words, the probability of a false match is below 1e-4.

    Args:
        collocations: the ids of each; they begin and end where words do.
    """

    def __init__(self, collocations: Sequence[Sequence[int]], vocab_size: int):
        self._codes = token_codes(vocab_size)
        self._known = np.sort(hashes(*flat(collocations), self._codes).view(np.int64))

    def heads(self, word_ids: tf.Tensor, candidate: tf.Tensor, continuation: tf.Tensor) -> tf.Tensor:
        """The first position of each unit, bool [batch, seq]; for the other arguments see `mask_units`.

        Args:
            word_ids: int32 [batch, seq], before any is masked.
        """
        sequence_length = word_ids.shape[1]
        is_head = word_heads(candidate, continuation)
        # The end of the word at each position; a position that is not a candidate counts as a word.
        begun = tf.cumsum(tf.cast(is_head | ~candidate, tf.int32), axis=1)
        word_ends = tf.searchsorted(begun, begun + 1)
        terms = tf.gather(tf.constant(self._codes), word_ids) * powers(BASE, sequence_length)
        sums = tf.pad(tf.cumsum(terms, axis=1), [[0, 0], [1, 0]])
        inverse_powers = powers(pow(BASE, -1, 2**64), sequence_length)
        # From the start of a word to its end; any other position, such as the end of a segment, leads to itself.
        further = tf.where(is_head, word_ends, tf.range(sequence_length))
        further = tf.pad(further, [[0, 0], [0, 1]], constant_values=sequence_length)
        ends = end = word_ends
        for _ in range(MOST_WORDS - 1):
            end = tf.gather(further, end, batch_dims=1)
            found = tf.bitcast((tf.gather(sums, end, batch_dims=1) - sums[:, :-1]) * inverse_powers, tf.int64)
            ends = tf.where(is_head & self._is_known(found), end, ends)
        return is_head & _visited(ends)

    def _is_known(self, found: tf.Tensor) -> tf.Tensor:
        """Whether each of int64 [batch, seq] is the hash of a collocation: bool [batch, seq]."""
        if not len(self._known):
            return tf.zeros_like(found, tf.bool)
        known = tf.constant(self._known)
        place = tf.searchsorted(known, tf.reshape(found, [-1]))
        nearest = tf.gather(known, tf.minimum(place, len(self._known) - 1))
        return tf.reshape(nearest, tf.shape(found)) == found


def _visited(ends: tf.Tensor) -> tf.Tensor:
    """The positions that a walk from position 0 visits, jumping from each to its end: bool [batch, seq].

    Each round doubles the length of the jumps: after n rounds, all within 2**n jumps have been found.
    """
    sequence_length = ends.shape[1]
    jumps = tf.pad(ends, [[0, 0], [0, 1]], constant_values=sequence_length)
    visited = tf.broadcast_to(tf.one_hot(0, sequence_length + 1, dtype=tf.int32), tf.shape(jumps))
    for _ in range(sequence_length.bit_length()):
        visited = tf.minimum(visited + add_up(visited, jumps), 1)
        jumps = tf.gather(jumps, jumps, batch_dims=1)
    return visited[:, :-1] > 0
