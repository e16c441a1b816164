"""Questions with windows of their passages as rows of pieces: [CLS] question [SEP] window [SEP].

Source: run_squad.py of google-research/bert (convert_examples_to_features), by offsets in place of words.
"""

import dataclasses

import numpy as np

from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.tasks.question_answering.answer_spans import LOST, count_of

_TEXTS_AT_ONCE = 1024
_ROWS_AT_ONCE = 1 << 15


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

    def __len__(self):
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
    def lengths(self):
        return np.diff(self.splits)


def question_windows(answered, tokenizer, max_length=384, stride=128, max_question_length=64):
    """The `QuestionWindows` of questions; each passage is tokenized once, however many questions it has.

    Args:
        answered: an `AnsweredQuestions`.
        tokenizer: a `WordPieceTokenizer`.
        max_length: the most pieces of a row, special tokens included.
        stride: pieces from the beginning of one window of a passage to that of the next.
        max_question_length: pieces after which a question is cut.

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
    question_lengths = np.minimum(texts.lengths, max_question_length)
    passage = np.array([question.passage for question in answered.questions], np.int64)
    passage_lengths = passages.lengths[passage]

    room = max_length - 3 - question_lengths
    step = np.minimum(stride, room)
    counts = 1 + np.maximum(-(-(passage_lengths - room) // step), 0)
    first_rows = _splits(counts)
    of_row = np.repeat(np.arange(len(answered)), counts)
    begins = (np.arange(len(of_row)) - first_rows[of_row]) * step[of_row]
    lengths = np.minimum(passage_lengths[of_row] - begins, room[of_row])

    vocabulary = tokenizer.vocabulary
    pool = np.concatenate([[vocabulary.cls_id, vocabulary.sep_id], texts.ids, passages.ids]).astype(np.int32)
    first_piece = 2 + len(texts.ids) + passages.splits[passage[of_row]] + begins
    one = np.ones_like(of_row)
    part_starts = np.stack([0 * one, 2 + texts.splits[of_row], one, first_piece, one], axis=1)
    part_lengths = np.stack([one, question_lengths[of_row], one, lengths, one], axis=1)
    ids = [
        pool[_ranges(part_starts[row : row + _ROWS_AT_ONCE].ravel(), part_lengths[row : row + _ROWS_AT_ONCE].ravel())]
        for row in range(0, len(of_row), _ROWS_AT_ONCE)
    ]
    second_starts = question_lengths[of_row] + 2
    rows = TokenRows(
        ids=np.concatenate(ids),
        starts=_splits(part_lengths.sum(axis=1)),
        second_starts=second_starts.astype(np.int32),
        extra={},
    )
    odd = [(texts.lengths > max_question_length, f"questions of more than {max_question_length} pieces, cut")]
    if answered.spans is not None:
        first, last = piece_spans(answered, passages)
        is_lost = (answered.spans[:, 0] == LOST) | (last < first)
        odd.append((last < first, "answers without a piece, not trained on"))
        row_first, row_last, is_lost = first[of_row], last[of_row], is_lost[of_row]
        is_inside = (row_first >= begins) & (row_last < begins + lengths) & ~is_lost
        rows.extra["start_positions"] = np.where(is_inside, row_first - begins + second_starts, 0).astype(np.int32)
        rows.extra["end_positions"] = np.where(is_inside, row_last - begins + second_starts, 0).astype(np.int32)
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


def tokenize(tokenizer, texts):
    """The `Pieces` of a list of texts."""
    parts = []
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        ids, starts, ends = tokenizer.tokenize_with_offsets(texts[first : first + _TEXTS_AT_ONCE])
        parts.append([array.numpy() for array in (ids.values, starts.values, ends.values, ids.row_lengths())])
    ids, starts, ends, lengths = (np.concatenate(column) for column in zip(*parts))
    # Marks that normalisation puts into another order can leave a piece with no character between its ends.
    return Pieces(ids, starts, np.maximum(ends, starts + 1), _splits(lengths))


def piece_spans(answered, passages):
    """(first, last), int64 [questions] each: the pieces that an answer touches, counted in its passage.

    Both -1 where there is no answer. Where the span holds no piece (marks that the tokenizer takes out), the last
    comes before the first.
    """
    passage = np.array([question.passage for question in answered.questions], np.int64)
    # One number line for the characters of all passages, on which offsets only grow.
    text_starts = _splits([len(text) + 1 for text in answered.passages])
    of_piece = np.repeat(text_starts[:-1], passages.lengths)
    starts, ends = answered.spans.T + text_starts[passage]
    first = np.searchsorted(of_piece + passages.ends, starts, side="right") - passages.splits[passage]
    last = np.searchsorted(of_piece + passages.starts, ends, side="left") - 1 - passages.splits[passage]
    has_answer = answered.spans[:, 0] >= 0
    return np.where(has_answer, first, -1), np.where(has_answer, last, -1)


def window_owners(begins, lengths):
    """For each piece of a passage the window of most context, as a place in `begins`: int [pieces].

    A window gives a piece as much context as there is on its narrower side, and a hundredth of its own length
    (run_squad.py, `_check_is_max_context`, here in whole hundredths); of equal ones the first counts.

    Args:
        begins, lengths: int64 [windows], of one passage.
    """
    piece = np.arange(begins[-1] + lengths[-1])
    left = piece - begins[:, None]
    right = begins[:, None] + lengths[:, None] - 1 - piece
    context = np.minimum(left, right)
    return np.where(context >= 0, 100 * context + lengths[:, None], -1).argmax(axis=0)


def _splits(lengths):
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _ranges(starts, lengths):
    """`starts[0], starts[0] + 1, …` of each length, one after the other: int64."""
    after = np.cumsum(lengths)
    return np.repeat(starts - after + lengths, lengths) + np.arange(after[-1])
