"""Rows of token ids out of spans: [CLS], then each span with its [SEP], then padding."""

from typing import NamedTuple

import tensorflow as tf

_FEW_SPANS = 4  # Up to here comparing with each takes less than half the time of a search.


class Rows(NamedTuple):
    """Rows of a batch.

    Attributes:
        word_ids: int32 [batch, seq].
        lengths: int32 [batch], places that are not padding.
        span_numbers: int32 [batch, seq], the span that a place belongs to, its [SEP] included; 0 at [CLS] and padding.
        sources: int64 [batch, seq], the token that stands at a place; some token's at the special ones.
    """

    word_ids: tf.Tensor
    lengths: tf.Tensor
    span_numbers: tf.Tensor
    sources: tf.Tensor


def assemble_rows(tokens, spans, sequence_length, vocabulary):
    """`Rows` of `sequence_length` places.

    Args:
        tokens: integers [tokens], ids.
        spans: int64 [batch, 2 * n], n static: start and end of each span in the tokens; those of no token come last.
        sequence_length: int; every row fits.
        vocabulary: a `Vocabulary`.
    """
    starts, ends = spans[:, 0::2], spans[:, 1::2]
    lengths = tf.cast(ends - starts, tf.int32)
    after = 1 + tf.cumsum(lengths + tf.cast(lengths > 0, tf.int32), axis=1)  # The place behind a span's [SEP].
    shifts = ends - tf.cast(after, tf.int64) + 1  # From a place to the token that stands there.
    places = tf.range(sequence_length)[None, :]
    number, span_after, shift = _spans_at(places, after, shifts)
    is_filled = places < after[:, -1:]
    is_text = (places > 0) & (places < span_after - 1)
    sources = tf.where(is_text, tf.cast(places, tf.int64) + shift, 0)
    special = tf.where(places == 0, vocabulary.cls_id, tf.where(is_filled, vocabulary.sep_id, vocabulary.pad_id))
    word_ids = tf.where(is_text, tf.cast(tf.gather(tokens, sources), tf.int32), special)
    return Rows(word_ids, after[:, -1], tf.where(is_filled, number, 0), sources)


def _spans_at(places, after, shifts):
    """For each place [1, seq] the number of its span, and what stands for that in `after` and `shifts` [batch, n]."""
    if after.shape[1] > _FEW_SPANS:
        places = tf.broadcast_to(places, [tf.shape(after)[0], places.shape[1]])
        number = tf.minimum(tf.searchsorted(after, places, side="right"), after.shape[1] - 1)
        return number, tf.gather(after, number, batch_dims=1), tf.gather(shifts, number, batch_dims=1)
    number, span_after, shift = tf.zeros_like(places), after[:, :1], shifts[:, :1]
    for span in range(1, after.shape[1]):
        is_in = places >= after[:, span - 1, None]
        number += tf.cast(is_in, tf.int32)
        span_after = tf.where(is_in, after[:, span, None], span_after)
        shift = tf.where(is_in, shifts[:, span, None], shift)
    return number, span_after, shift
