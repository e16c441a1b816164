"""Questions with windows of their passages as rows of pieces: [CLS] question [SEP] window [SEP].

Source: run_squad.py of google-research/bert (convert_examples_to_features), by offsets in place of words.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.inputs.passage_windows import passage_windows
from keras_bert.inputs.pieces import PieceSpans
from keras_bert.inputs.segments import flat_rows
from keras_bert.inputs.truncation import truncate
from keras_bert.tasks.examples.blocks import blocks
from keras_bert.tasks.question_answering.answer_spans import LOST, AnsweredQuestions, count_of
from keras_bert.text.tokenizer import WordPieceTokenizer
from keras_bert.text.vocabulary import Vocabulary

_TEXTS_AT_ONCE = 1024
_WINDOWS_AT_ONCE = 4096


@dataclasses.dataclass
class QuestionWindows:
    """The windows of a split's questions, those of one question one after the other.

    Attributes:
        rows: the `TokenRows`. With known answers `extra` has `start_positions` and `end_positions`, int32 [rows]: the
            places in the row of the answer's first and last piece, 0 ([CLS]) where the window does not hold it whole;
            and where answers were not found, or hold no piece, `example_weights`, float32 [rows], 0 for their rows.
        first_rows: int64 [questions + 1], where each question's rows begin.
        begins: int64 [rows], the place in its passage's pieces at which a window begins.
        lengths: int64 [rows], pieces of the passage in a window.
        passages: `Pieces` of the passages.
        warnings: what is cut or not trained on, one line each.
    """

    rows: TokenRows
    first_rows: np.ndarray
    begins: np.ndarray
    lengths: np.ndarray
    passages: "Pieces"
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.begins)


@dataclasses.dataclass
class Pieces:
    """Texts in pieces, as flat arrays.

    Attributes:
        ids: int32 [pieces].
        starts, ends: int32 [pieces], where each comes from, in code points of its text.
        splits: int64 [texts + 1], where each text begins in them.
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
    tokenizer: WordPieceTokenizer,
    max_length: int = 384,
    stride: int = 128,
    max_question_length: int = 64,
) -> QuestionWindows:
    """The windows of questions; each passage is tokenized once, however many questions it has.

    Args:
        answered: the questions.
        tokenizer: splits questions and passages into pieces.
        max_length: the most pieces of a row, special tokens included.
        stride: pieces from the start of one window of a passage to the start of the next.
        max_question_length: pieces to which a question is truncated.

    Raises:
        ValueError: a row has no room for a passage.
    """
    if max_length - 3 - max_question_length < 1 or stride < 1 or max_question_length < 0:
        raise ValueError(
            "max_length: needs room for the question, three special tokens and a piece of the passage, and a stride "
            f"of 1 or more. Received: max_length {max_length}, max_question_length {max_question_length}, "
            f"stride {stride}."
        )
    passages = tokenize(tokenizer, answered.passages)
    texts = tokenize(tokenizer, [question.text for question in answered.questions])
    passage = np.array([question.passage for question in answered.questions], np.int64)
    rows, counts, begins, lengths = _lay_out(
        texts, passages, passage, tokenizer.vocabulary, max_length, stride, max_question_length
    )
    first_rows = _splits(counts)
    of_row = np.repeat(np.arange(len(answered)), counts)
    odd = [(texts.lengths > max_question_length, f"questions of more than {max_question_length} pieces, cut")]
    if answered.spans is not None:
        first, last = piece_spans(answered, passages)
        is_lost = (answered.spans[:, 0] == LOST) | (last < first)
        odd.append((last < first, "answers without a piece, not trained on"))
        row_first, row_last, is_lost = first[of_row], last[of_row], is_lost[of_row]
        is_inside = (row_first >= begins) & (row_last < begins + lengths) & ~is_lost
        rows.extra["start_positions"] = np.where(is_inside, row_first - begins + rows.second_starts, 0).astype(np.int32)
        rows.extra["end_positions"] = np.where(is_inside, row_last - begins + rows.second_starts, 0).astype(np.int32)
        is_whole = np.logical_or.reduceat(is_inside, first_rows[:-1])
        odd.append(
            ((first <= last) & (last >= 0) & ~is_whole, "answers that no window holds whole, trained on as none")
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
    max_length: int,
    stride: int,
    max_question_length: int,
) -> tuple[TokenRows, np.ndarray, np.ndarray, np.ndarray]:
    """(the rows without extras; int64: the windows of each question, and where each begins, and its length)."""
    parts = []
    # At least as many windows as each question has.
    most_windows = 1 + passages.lengths[passage] // min(stride, max_length - 3 - max_question_length)
    with tf.device("CPU"):
        question_ids, passage_ids = tf.constant(texts.ids), tf.constant(passages.ids)
        for first, end in blocks(_splits(most_windows), _WINDOWS_AT_ONCE):
            questions = truncate(_spans(texts, question_ids, np.arange(first, end)), max_question_length)
            of_questions = _spans(passages, passage_ids, passage[first:end])
            segments, windows = passage_windows(questions, of_questions, max_length, stride)
            counts = windows.first_windows[1:] - windows.first_windows[:-1]
            tensors = (*flat_rows(segments, vocabulary), counts, windows.begins, windows.lengths)
            parts.append([tensor.numpy() for tensor in tensors])
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    ids, row_lengths, second_starts = columns[:3]
    rows = TokenRows(ids, _splits(row_lengths), second_starts, {})
    counts, begins, lengths = (column.astype(np.int64) for column in columns[3:])
    return rows, counts, begins, lengths


def tokenize(tokenizer: WordPieceTokenizer, texts: Sequence[str]) -> Pieces:
    """The pieces of texts."""
    parts = []
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        ids, starts, ends = tokenizer.tokenize_with_offsets(texts[first : first + _TEXTS_AT_ONCE])
        parts.append([array.numpy() for array in (ids.values, starts.values, ends.values, ids.row_lengths())])
    ids, starts, ends, lengths = (np.concatenate(column) for column in zip(*parts))
    # Marks that normalisation puts into another order can leave a piece with no character between its ends.
    return Pieces(ids, starts, np.maximum(ends, starts + 1), _splits(lengths))


def piece_spans(answered: AnsweredQuestions, passages: Pieces) -> tuple[np.ndarray, np.ndarray]:
    """(first, last), int64 [questions] each: the pieces that an answer touches, counted in its passage.

    Both -1 where there is no answer. Where the span holds no piece (marks that the tokenizer takes out), the last
    comes before the first.
    """
    assert answered.spans is not None, "Hidden answers have no pieces."
    passage = np.array([question.passage for question in answered.questions], np.int64)
    # One number line for the characters of all passages, on which offsets only grow.
    text_starts = _splits([len(text) + 1 for text in answered.passages])
    of_piece = np.repeat(text_starts[:-1], passages.lengths)
    starts, ends = answered.spans.T + text_starts[passage]
    first = np.searchsorted(of_piece + passages.ends, starts, side="right") - passages.splits[passage]
    last = np.searchsorted(of_piece + passages.starts, ends, side="left") - 1 - passages.splits[passage]
    has_answer = answered.spans[:, 0] >= 0
    return np.where(has_answer, first, -1), np.where(has_answer, last, -1)


def _spans(pieces: Pieces, ids: tf.Tensor, numbers: np.ndarray) -> PieceSpans:
    """The spans of the texts with these numbers in `ids`, which are those of `pieces`."""
    columns = (pieces.splits[numbers], pieces.lengths[numbers])
    return PieceSpans(ids, *(tf.constant(column, tf.int32) for column in columns))


def _splits(lengths: ArrayLike) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
