"""Segments to rows of tokens: [CLS] first [SEP], or [CLS] first [SEP] second [SEP]."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from keras_bert.inputs.padding import padded_length
from keras_bert.inputs.pieces import PieceSpans
from keras_bert.text.vocabulary import Vocabulary


class FlatRows(NamedTuple):
    """Rows of tokens, special tokens included, one after the other.

    Attributes:
        ids: int32 `[tokens]`.
        lengths: int32 `[batch]`, the tokens of each row.
        second_starts: int32 `[batch]`, the position in the row where the second segment starts; the row's length if
            none.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    second_starts: tf.Tensor


def flat_rows(segments: Sequence[PieceSpans], vocabulary: Vocabulary) -> FlatRows:
    """The rows of one or two segments each, without padding.

    Args:
        segments: the first and, for pairs, the second texts, truncated.
        vocabulary: the vocabulary of the pieces.
    """
    lengths = _row_lengths(segments)
    row = tf.repeat(tf.range(tf.size(lengths)), lengths)
    positions = tf.range(tf.size(row)) - tf.gather(tf.cumsum(lengths, exclusive=True), row)
    ids = _ids(segments, vocabulary, positions, lambda column: tf.gather(column, row))
    return FlatRows(ids, lengths, _second_starts(segments))


def padded_rows(
    segments: Sequence[PieceSpans], vocabulary: Vocabulary, lengths: Sequence[int] | None = None
) -> dict[str, tf.Tensor]:
    """The rows of `flat_rows` as the encoder's inputs, each `[batch, seq]` int32.

    Args:
        segments: those of `flat_rows`; with their special tokens they fit into the last of `lengths`.
        vocabulary: the vocabulary of the pieces.
        lengths: see `padded_length`; None pads to the longest row.
    """
    totals = _row_lengths(segments)
    needed = tf.reduce_max(tf.concat([totals, [1]], axis=0))
    positions = tf.range(needed if lengths is None else padded_length(lengths, needed))[tf.newaxis]
    is_real = positions < totals[:, tf.newaxis]
    is_second = is_real & (positions >= _second_starts(segments)[:, tf.newaxis])
    return {
        "input_word_ids": _ids(segments, vocabulary, positions, lambda column: column[:, tf.newaxis]),
        "input_mask": tf.cast(is_real, tf.int32),
        "input_type_ids": tf.cast(is_second, tf.int32),
    }


def _row_lengths(segments: Sequence[PieceSpans]) -> tf.Tensor:
    return 1 + tf.add_n([spans.lengths + 1 for spans in segments])


def _second_starts(segments: Sequence[PieceSpans]) -> tf.Tensor:
    return segments[0].lengths + 2


def _ids(
    segments: Sequence[PieceSpans],
    vocabulary: Vocabulary,
    positions: tf.Tensor,
    spread: Callable[[tf.Tensor], tf.Tensor],
) -> tf.Tensor:
    """The ids at positions in rows, [PAD] after a row's end.

    Args:
        segments: see `flat_rows`.
        vocabulary: the vocabulary of the pieces.
        positions: int32, any shape.
        spread: function (`[batch]`) -> the value of each position's row, broadcastable to `positions`.
    """
    # The special tokens come before all pieces, so that one gather fetches everything.
    values = [tf.constant([vocabulary.cls_id, vocabulary.sep_id, vocabulary.pad_id], tf.int32)]
    cls, sep, pad = range(3)
    sources = tf.where(tf.equal(positions, 0), cls, pad)
    offset, start = 3, 1
    for spans in segments:
        position_spans = spans.spread(spread)
        inside = positions - start
        is_piece = (inside >= 0) & (inside < position_spans.lengths)
        sources = tf.where(is_piece, position_spans.indices(inside) + offset, sources)
        sources = tf.where(tf.equal(inside, position_spans.lengths), sep, sources)
        values.append(spans.values)
        offset += tf.size(spans.values)
        start += position_spans.lengths + 1
    return tf.gather(tf.concat(values, axis=0), sources)
