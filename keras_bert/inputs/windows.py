"""Splits texts that are too long for a row into overlapping windows."""

import tensorflow as tf

from keras_bert.inputs.pieces import PieceSpans


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
