"""Spans of texts, given by their characters, as columns of rows."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from keras_bert.config.reading import TRUNCATE
from keras_bert.inputs.long_texts import fit_rows
from keras_bert.inputs.pieces import PieceSpans
from keras_bert.text.tokenizers import Tokenizer


class SpanRows(NamedTuple):
    """Rows with two spans each.

    Attributes:
        segments: the pieces of each row, truncated.
        starts, ends: int32 [batch, 2], the first column of each span and one past the last, special tokens included.
        is_whole: bool [batch], whether both spans have pieces, and all of these are in the row.
    """

    segments: Sequence[PieceSpans]
    starts: tf.Tensor
    ends: tf.Tensor
    is_whole: tf.Tensor


def span_rows(
    tokenizer: Tokenizer, texts: Sequence[tf.Tensor], starts: tf.Tensor, ends: tf.Tensor, max_length: int
) -> SpanRows:
    """Lays out texts with two spans, or pairs of texts with a span in each.

    A span is every piece that shares a character with it.

    Args:
        tokenizer: splits the texts.
        texts: strings [batch], of one or two columns.
        starts, ends: int32 [batch, 2], where the spans are in their texts, in code points, with exclusive ends.
        max_length: the maximum number of tokens of a row; longer texts are truncated at the end.
    """
    pieces = [tokenizer.tokenize_with_offsets(column) for column in texts]
    segments, _ = fit_rows([PieceSpans.of(ids) for ids, _, _ in pieces], max_length, TRUNCATE, None)
    places = []
    for number in (0, 1):
        of_text = min(number, len(texts) - 1)
        _, piece_starts, piece_ends = pieces[of_text]
        first = _counts(piece_ends, starts[:, number], tf.less_equal)
        last = _counts(piece_starts, ends[:, number], tf.less)
        before = segments[0].lengths + 2 if of_text else tf.ones_like(first)
        places.append((before + first, before + last, (first < last) & (last <= segments[of_text].lengths)))
    firsts, lasts, is_whole = (tf.stack(values, axis=1) for values in zip(*places))
    return SpanRows(segments, firsts, lasts, tf.reduce_all(is_whole, axis=1))


def _counts(values: tf.RaggedTensor, limits: tf.Tensor, compare: Callable[..., tf.Tensor]) -> tf.Tensor:
    """int32 [batch]: how many of the values of each row compare with its limit."""
    rows = values.value_rowids()
    is_counted = tf.cast(compare(values.values, tf.gather(limits, rows)), tf.int32)
    return tf.math.unsorted_segment_sum(is_counted, rows, tf.size(limits))
