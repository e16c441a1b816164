"""Questions, each with windows of its passage: [CLS] question [SEP] window [SEP].

Source: run_squad.py of google-research/bert (convert_examples_to_features).
"""

from typing import NamedTuple

import tensorflow as tf

from keras_bert.inputs.pieces import PieceSpans
from keras_bert.inputs.windows import windows


class PassageWindows(NamedTuple):
    """Windows of the passages of a batch of questions, sorted by question.

    Attributes:
        question: int32 [windows], the question of each window.
        begins: int32 [windows], the index in its passage's pieces where each window starts.
        lengths: int32 [windows], its number of pieces.
        first_windows: int32 [batch + 1], where the windows of each question start.
    """

    question: tf.Tensor
    begins: tf.Tensor
    lengths: tf.Tensor
    first_windows: tf.Tensor


def passage_windows(
    questions: PieceSpans, passages: PieceSpans, max_length: int, stride: int
) -> tuple[list[PieceSpans], PassageWindows]:
    """`(segments of each window's row, windows)`.

    Args:
        questions: the questions, truncated.
        passages: the passage of each question.
        max_length: the maximum number of tokens of a row, special tokens included.
        stride: pieces from the start of one window of a passage to the start of the next.
    """
    shown, question = windows(passages, max_length - 3 - questions.lengths, stride, last_is_full=False)
    begins = shown.starts - tf.gather(passages.starts, question)
    first_windows = tf.searchsorted(question, tf.range(tf.size(passages.lengths) + 1))
    segments = [questions.taken(question), shown]
    return segments, PassageWindows(question, begins, shown.lengths, first_windows)
