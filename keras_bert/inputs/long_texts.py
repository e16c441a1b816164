"""Texts, or pairs of texts, to segments that fit into rows: truncated, by head and tail, or in windows."""

from collections.abc import Sequence

import tensorflow as tf

from keras_bert.config.reading import HEAD_TAIL, TRUNCATE, WINDOWS
from keras_bert.inputs.pieces import PieceSpans
from keras_bert.inputs.truncation import head_and_tail, truncate, truncate_pairs
from keras_bert.inputs.windows import windows, windows_of_pairs


def single_row(spans: PieceSpans, max_length: int, long: str) -> PieceSpans:
    """The pieces of each text that fit into one row of `max_length` tokens, as `fit_rows` takes them.

    A model that reads a long text in windows has several rows for it; here it gets the beginning.
    """
    [row], _ = fit_rows([spans], max_length, TRUNCATE if long == WINDOWS else long, None)
    return row


def fit_rows(
    columns: Sequence[PieceSpans], max_length: int, long: str, stride: int | None
) -> tuple[Sequence[PieceSpans], tf.Tensor | None]:
    """The segments of rows of at most `max_length` tokens.

    Args:
        columns: the texts or, for pairs, the first and the second texts.
        max_length: the maximum number of tokens of a row, special tokens included.
        long: how to handle longer texts, one of `config.reading.LONG`; see `InputConfig`.
        stride: pieces from one window to the next; half a window if 0 or None.

    Returns: `(segments, int32 [rows] the text of each row)`, with None for the latter if every text is one row.
    """
    longest = max_length - 1 - len(columns)
    first, second = columns if len(columns) == 2 else (columns[0], None)
    if long == WINDOWS:
        stride = stride or max(longest // 2, 1)
        if second is None:
            *segments, texts = windows(first, tf.fill(tf.shape(first.lengths), longest), stride)
        else:
            *segments, texts = windows_of_pairs(first, second, longest, stride)
        return segments, texts
    segments = [truncate(first, longest)] if second is None else list(truncate_pairs(first, second, longest))
    if long == HEAD_TAIL:
        segments = [head_and_tail(spans, kept) for spans, kept in zip(columns, segments, strict=True)]
    return segments, None
