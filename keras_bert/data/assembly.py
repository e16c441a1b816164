"""Rows of token ids out of spans: [CLS], then each span with its [SEP], then padding."""

from typing import NamedTuple

import tensorflow as tf


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
        spans: int64 [batch, 2 * n]: start and end of each span in the tokens. Those of no token come last in a row.
        sequence_length: int; every row fits.
        vocabulary: a `Vocabulary`.
    """
    starts, ends = spans[:, 0::2], spans[:, 1::2]
    widths = ends - starts + tf.cast(ends > starts, tf.int64)
    after = 1 + tf.cumsum(widths, axis=1)  # [batch, n], the place behind a span's [SEP].
    places = tf.broadcast_to(tf.range(sequence_length, dtype=tf.int64), [tf.shape(spans)[0], sequence_length])
    number = tf.searchsorted(after, places, side="right")
    number = tf.minimum(number, tf.shape(after)[1] - 1)
    is_filled = places < after[:, -1:]
    is_text = (places > 0) & (places < tf.gather(after, number, batch_dims=1) - 1)
    shifts = starts + widths - after
    sources = tf.where(is_text, places + tf.gather(shifts, number, batch_dims=1), 0)
    special = tf.where(places == 0, vocabulary.cls_id, tf.where(is_filled, vocabulary.sep_id, vocabulary.pad_id))
    word_ids = tf.where(is_text, tf.cast(tf.gather(tokens, sources), tf.int32), special)
    return Rows(word_ids, tf.cast(after[:, -1], tf.int32), tf.where(is_filled, number, 0), sources)
