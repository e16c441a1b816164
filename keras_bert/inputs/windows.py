"""Splits texts that are too long for a row into overlapping windows."""

from collections.abc import Sequence

import tensorflow as tf

from keras_bert.config.reading import HEAD_TAIL, TRUNCATE, WINDOWS
from keras_bert.inputs.rows import PieceSpans
from keras_bert.text.vocabulary import Vocabulary


def windows(spans: PieceSpans, room: tf.Tensor, stride: int, last_is_full: bool = True) -> tuple[PieceSpans, tf.Tensor]:
    """Splits spans that are too long into windows: `(windows, int32 [windows] the span of each)`.

    Args:
        spans: spans without gaps.
        room: int32 [batch], the maximum length of each span's windows.
        stride: pieces from the start of one window to the start of the next.
        last_is_full: whether the last window of a span starts early, so that it is as long as the others.
    """
    step = tf.maximum(tf.minimum(stride, room), 1)
    last = tf.maximum(spans.lengths - room, 0)
    counts = (last + step - 1) // step + 1
    span = tf.repeat(tf.range(tf.size(counts)), counts)
    number = tf.range(tf.size(span)) - tf.gather(tf.cumsum(counts, exclusive=True), span)
    begins = number * tf.gather(step, span)
    if last_is_full:
        begins = tf.minimum(begins, tf.gather(last, span))
    lengths = tf.minimum(tf.gather(spans.lengths, span) - begins, tf.gather(room, span))
    return PieceSpans(spans.values, tf.gather(spans.starts, span) + begins, lengths), span


def windows_of_pairs(
    firsts: PieceSpans, seconds: PieceSpans, longest: int, stride: int
) -> tuple[PieceSpans, PieceSpans, tf.Tensor]:
    """Windows over the second text of a pair, each with the first text, truncated to half the room; see `windows`.

    Returns: `(firsts, seconds, int32 [windows] the pair of each)`.
    """
    is_long = firsts.lengths + seconds.lengths > longest
    beside = tf.minimum(firsts.lengths, tf.maximum(longest // 2, longest - seconds.lengths))
    kept = tf.where(is_long, beside, firsts.lengths)
    seconds, pair = windows(seconds, longest - kept, stride)
    return firsts._replace(lengths=kept).taken(pair), seconds, pair


def window_of_most_context(
    context: tf.Tensor, window: tf.Tensor, windows: tf.Tensor, place: tf.Tensor, places: tf.Tensor
) -> tf.Tensor:
    """For each place, the window that gives it the most context, the first of equal ones: int32 [places].

    Args:
        context: int32, any shape: how much context a window gives a place.
        window: int32, broadcastable to that shape: the index of the window.
        windows: int32 scalar: the number of windows.
        place: int32, the shape of `context`: the index of the place; negative ones are ignored.
        places: int32 scalar: the number of places.
    """
    windows = tf.cast(windows, tf.int64)
    # Both in one number, whose maximum decides.
    rank = tf.cast(context, tf.int64) * windows + (windows - 1 - tf.cast(window, tf.int64))
    best = tf.math.unsorted_segment_max(rank, place, places)
    return tf.cast(windows - 1 - best % windows, tf.int32)


def truncate(spans: PieceSpans, longest: int | tf.Tensor) -> PieceSpans:
    """Truncates spans to their first `longest` pieces."""
    return spans._replace(lengths=tf.minimum(spans.lengths, longest))


def truncate_beginning(spans: PieceSpans, longest: int) -> PieceSpans:
    """Truncates spans to their last `longest` pieces."""
    beyond = tf.maximum(spans.lengths - longest, 0)
    return spans._replace(starts=spans.starts + beyond, lengths=spans.lengths - beyond)


def truncate_pairs(firsts: PieceSpans, seconds: PieceSpans, longest: int) -> tuple[PieceSpans, PieceSpans]:
    """Truncates pairs to `longest` pieces together.

    The longer text of a pair loses pieces at its end, one by one; the second if they are equally long
    (run_classifier.py, `_truncate_seq_pair`).
    """
    kept = tf.minimum(firsts.lengths, tf.maximum(longest - seconds.lengths, longest - longest // 2))
    return firsts._replace(lengths=kept), truncate(seconds, longest - kept)


def head_and_tail(spans: PieceSpans, kept: PieceSpans) -> PieceSpans:
    """Shortens each span to the length of that in `kept`: a quarter from its beginning, the rest from its end."""
    return spans._replace(lengths=kept.lengths, heads=kept.lengths // 4, gaps=spans.lengths - kept.lengths)


def single_row(spans: PieceSpans, max_length: int, long: str, vocabulary: Vocabulary) -> PieceSpans:
    """The pieces of each text that fit into one row of `max_length` tokens, as `fit_rows` takes them.

    A model that reads a long text in windows has several rows for it; here it gets the beginning.
    """
    [row], _ = fit_rows([spans], max_length, TRUNCATE if long == WINDOWS else long, None, vocabulary)
    return row


def fit_rows(
    columns: Sequence[PieceSpans], max_length: int, long: str, stride: int | None, vocabulary: Vocabulary
) -> tuple[Sequence[PieceSpans], tf.Tensor | None]:
    """The segments of rows of at most `max_length` tokens.

    Args:
        columns: the texts or, for pairs, the first and the second texts.
        max_length: the maximum number of tokens of a row, special tokens included.
        long: how to handle longer texts, one of `config.reading.LONG`; see `InputConfig`.
        stride: pieces from one window to the next; half a window if 0 or None.
        vocabulary: the vocabulary of the pieces, which adds the special tokens.

    Returns: `(segments, int32 [rows] the text of each row)`, with None for the latter if every text is one row.
    """
    longest = max_length - vocabulary.row_pattern.special_tokens(len(columns))
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
