"""Lays out questions and windows of their passages as rows: [CLS] question [SEP] window [SEP].

Source: run_squad.py of google-research/bert (convert_examples_to_features), with offsets instead of words.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.data.windows import blocks, offsets
from keras_bert.inputs.rows import PieceSpans, flat_rows
from keras_bert.inputs.windows import truncate, windows
from keras_bert.tasks.question_answering.data import LOST, AnsweredQuestions, count_of
from keras_bert.text.tokenizers import Tokenizer
from keras_bert.text.vocabulary import Vocabulary


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
    questions: PieceSpans, passages: PieceSpans, capacity: int, stride: int
) -> tuple[list[PieceSpans], PassageWindows]:
    """`(segments of each window's row, windows)`.

    Args:
        passages: the passage of each question.
        capacity: the maximum number of pieces of a row, without special tokens.
        stride: pieces from the start of one window of a passage to the start of the next.
    """
    shown, question = windows(passages, capacity - questions.lengths, stride, last_is_full=False)
    begins = shown.starts - tf.gather(passages.starts, question)
    first_windows = tf.searchsorted(question, tf.range(tf.size(passages.lengths) + 1))
    segments = [questions.taken(question), shown]
    return segments, PassageWindows(question, begins, shown.lengths, first_windows)


_TEXTS_AT_ONCE = 1024
_WINDOWS_AT_ONCE = 4096


@dataclasses.dataclass
class QuestionWindows:
    """The windows of a split's questions: one row per window, the windows of a question in consecutive rows.

    Attributes:
        rows: the rows. If answers are known, their `extra` has `start_positions` and `end_positions`, int32 [rows], the
            positions in the row of the answer's first and last piece, or 0 ([CLS]) if the window does not contain the
            whole answer. If some answers were not found or have no pieces, it also has `example_weights`, float32
            [rows], which is 0 for the rows of these questions and 1 for all others.
        first_rows: int64 [questions + 1], the first row of each question, and the number of rows.
        begins: int64 [rows], the index of the window's first piece in its passage.
        lengths: int64 [rows], how many pieces of the passage are in the window.
        passages: the pieces of the passages.
        warnings: what was truncated or cannot be trained on, one line each.
    """

    rows: TokenRows
    first_rows: np.ndarray
    begins: np.ndarray
    lengths: np.ndarray
    passages: "Pieces"
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass
class Pieces:
    """The pieces of several texts, as flat arrays.

    Attributes:
        ids: int32 [pieces].
        starts, ends: int32 [pieces], the offsets of each piece in its text, in code points.
        splits: int64 [texts + 1], where each text starts in the other arrays.
    """

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    splits: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.splits)


def question_windows(
    answered: AnsweredQuestions,
    tokenizer: Tokenizer,
    max_length: int = 384,
    stride: int = 128,
    max_question_length: int = 64,
) -> QuestionWindows:
    """The windows of questions; each passage is tokenized once, however many questions it has.

    Args:
        max_length: the maximum length of a row, special tokens included.
        stride: pieces from the start of one window of a passage to the start of the next.
        max_question_length: the length in pieces to which questions are truncated.

    Raises:
        ValueError: the lengths leave no room for a passage.
    """
    capacity = max_length - tokenizer.vocabulary.row_pattern.special_tokens(2)
    if capacity - max_question_length < 1 or stride < 1 or max_question_length < 0:
        raise ValueError(
            "max_length: needs room for the question, the special tokens and a piece of the passage, and a stride "
            f"of 1 or more. Received: max_length {max_length}, max_question_length {max_question_length}, "
            f"stride {stride}."
        )
    passages = tokenize(tokenizer, answered.passages)
    texts = tokenize(tokenizer, [question.text for question in answered.questions])
    passage = np.array([question.passage for question in answered.questions], np.int64)
    rows, counts, begins, lengths = _lay_out(
        texts, passages, passage, tokenizer.vocabulary, capacity, stride, max_question_length
    )
    first_rows = offsets(counts)
    question_of_row = np.repeat(np.arange(len(answered)), counts)
    odd = [(texts.lengths > max_question_length, f"questions truncated to {max_question_length} pieces")]
    if answered.spans is not None:
        first, last = piece_spans(answered, passages)
        is_lost = (answered.spans[:, 0] == LOST) | (last < first)
        odd.append((last < first, "answers without a piece, not trained on"))
        row_first, row_last, is_lost = (values[question_of_row] for values in (first, last, is_lost))
        is_inside = (row_first >= begins) & (row_last < begins + lengths) & ~is_lost
        rows.extra["start_positions"] = np.where(is_inside, row_first - begins + rows.second_starts, 0).astype(np.int32)
        rows.extra["end_positions"] = np.where(is_inside, row_last - begins + rows.second_starts, 0).astype(np.int32)
        is_whole = np.logical_or.reduceat(is_inside, first_rows[:-1])
        odd.append(
            ((first <= last) & (last >= 0) & ~is_whole, "answers that no window contains in full, trained as no answer")
        )
        if is_lost.any():
            rows.extra["example_weights"] = (~is_lost).astype(np.float32)
    warnings = tuple(
        f"{answered.origin}: {count_of(what, [answered.questions[place].id for place in np.flatnonzero(which)])}"
        for which, what in odd
        if which.any()
    )
    return QuestionWindows(rows, first_rows, begins, lengths, passages, warnings)


def _lay_out(
    texts: Pieces,
    passages: Pieces,
    passage: np.ndarray,
    vocabulary: Vocabulary,
    capacity: int,
    stride: int,
    max_question_length: int,
) -> tuple[TokenRows, np.ndarray, np.ndarray, np.ndarray]:
    """(rows without `extra`; int64 [questions], the windows of each; `begins` and `lengths` of `QuestionWindows`)."""
    parts = []
    # An upper bound on each question's windows.
    most_windows = 1 + passages.lengths[passage] // min(stride, capacity - max_question_length)
    with tf.device("CPU"):
        question_ids, passage_ids = tf.constant(texts.ids), tf.constant(passages.ids)
        for first, end in blocks(offsets(most_windows), _WINDOWS_AT_ONCE):
            questions = truncate(_spans(texts, question_ids, np.arange(first, end)), max_question_length)
            contexts = _spans(passages, passage_ids, passage[first:end])
            segments, windows = passage_windows(questions, contexts, capacity, stride)
            counts = windows.first_windows[1:] - windows.first_windows[:-1]
            tensors = (*flat_rows(segments, vocabulary), counts, windows.begins, windows.lengths)
            parts.append([tensor.numpy() for tensor in tensors])
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    ids, row_lengths, second_starts = columns[:3]
    last_segment = vocabulary.row_pattern.last_segment
    rows = TokenRows(ids, offsets(row_lengths), second_starts, {}, last_segment=last_segment)
    counts, begins, lengths = (column.astype(np.int64) for column in columns[3:])
    return rows, counts, begins, lengths


def tokenize(tokenizer: Tokenizer, texts: Sequence[str]) -> Pieces:
    """Splits texts into pieces, `_TEXTS_AT_ONCE` at a time."""
    parts = []
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        ids, starts, ends = tokenizer.tokenize_with_offsets(texts[first : first + _TEXTS_AT_ONCE])
        parts.append([array.numpy() for array in (ids.values, starts.values, ends.values, ids.row_lengths())])
    ids, starts, ends, lengths = (np.concatenate(column) for column in zip(*parts))
    # Normalization can reorder combining marks and so leave no character between the offsets of a piece.
    return Pieces(ids, starts, np.maximum(ends, starts + 1), offsets(lengths))


def piece_spans(answered: AnsweredQuestions, passages: Pieces) -> tuple[np.ndarray, np.ndarray]:
    """(first, last), int64 [questions] each: the first and last piece that overlap the answer, counted in its passage.

    Both are -1 if there is no answer. If no piece overlaps it (the tokenizer removes some marks), last < first.
    """
    assert answered.spans is not None, "Hidden answers have no pieces."
    passage = np.array([question.passage for question in answered.questions], np.int64)
    # Offsets in the concatenation of all passages, where they are ascending.
    text_starts = offsets([len(text) + 1 for text in answered.passages])
    piece_texts = np.repeat(text_starts[:-1], passages.lengths)  # The start of the text of each piece.
    starts, ends = answered.spans.T + text_starts[passage]
    first = np.searchsorted(piece_texts + passages.ends, starts, side="right") - passages.splits[passage]
    last = np.searchsorted(piece_texts + passages.starts, ends, side="left") - 1 - passages.splits[passage]
    has_answer = answered.spans[:, 0] >= 0
    return np.where(has_answer, first, -1), np.where(has_answer, last, -1)


def _spans(pieces: Pieces, ids: tf.Tensor, numbers: np.ndarray) -> PieceSpans:
    """The spans, in `ids`, of the texts with these numbers; `ids` is `pieces.ids` as a tensor."""
    columns = (pieces.splits[numbers], pieces.lengths[numbers])
    return PieceSpans(ids, *(tf.constant(column, tf.int32) for column in columns))
