"""Truncates texts that are too long for a row."""

import tensorflow as tf

from keras_bert.inputs.pieces import PieceSpans


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
