"""From start and end logits to the best answers to each question, cut from the passages.

Source: run_squad.py of google-research/bert (write_predictions).
"""

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from scipy.special import softmax

from keras_bert.inference.finite_outputs import require_numbers
from keras_bert.inference.span_decoding import Passages, best_answers, no_answer
from keras_bert.inputs.passage_windows import PassageWindows
from keras_bert.tasks.examples.blocks import blocks
from keras_bert.tasks.question_answering.answer_spans import AnsweredQuestions
from keras_bert.tasks.question_answering.windows import Pieces, QuestionWindows

_PIECES_AT_ONCE = 3 << 15  # 256 windows of 384 pieces.
_SPANS_PER_ANSWER = 4  # At first. Few questions have enough spans with equal texts to need more.


class Span(NamedTuple):
    """An answer: its text, its offsets in the passage in code points, and its start and end logits."""

    text: str
    start: int
    end: int
    start_logit: float
    end_logit: float

    @property
    def score(self) -> float:
        return self.start_logit + self.end_logit


class Decoded(NamedTuple):
    """A model's answers to one question.

    Attributes:
        spans: the best `Span`s, best first, no two with the same text; empty if the passage has no pieces.
        null: "no answer" as a `Span`: the empty text with the lowest logits of [CLS] in any window.
    """

    spans: list[Span]
    null: Span

    @property
    def best_text(self) -> str:
        return self.spans[0].text if self.spans else ""

    @property
    def null_odds(self) -> float:
        """The score of "no answer" minus that of the best answer (`score_diff` in run_squad.py)."""
        return self.null.score - (self.spans[0].score if self.spans else 0.0)


def decode(
    answered: AnsweredQuestions,
    windows: QuestionWindows,
    outputs: Mapping[str, Sequence[np.ndarray]],
    max_answer_length: int = 30,
    n_best: int = 20,
) -> Iterator[Decoded]:
    """Yields the `Decoded` of each question in order; see `inference.span_decoding.best_answers`.

    Args:
        answered: the questions.
        windows: their windows.
        outputs: `{"start_logits": …, "end_logits": …}`, each a list with an array [length] for each row.
        max_answer_length: the maximum length of an answer in pieces.
        n_best: the number of answers per question.

    Raises:
        UserError: a logit is not finite.
        ValueError: the outputs do not have the lengths of the rows.
    """
    logits = [_checked(outputs[name], name, windows.rows.lengths) for name in ("start_logits", "end_logits")]
    decode_block = functools.partial(_decode_block, answered, windows, logits, max_answer_length, n_best)
    for block in blocks(windows.first_rows, max(1, _PIECES_AT_ONCE // windows.rows.lengths.max())):
        answers, are_all = decode_block(block, _SPANS_PER_ANSWER)
        for question, answer, is_final in zip(range(*block), answers, are_all, strict=True):
            spans_per_answer = _SPANS_PER_ANSWER
            while len(answer.spans) < n_best and not is_final:
                spans_per_answer *= 4
                [answer], [is_final] = decode_block((question, question + 1), spans_per_answer)
            yield answer


def decoded(served: Mapping[str, Any]) -> Decoded:
    """The `Decoded` of one question, from the outputs of a `ServingFunction`."""
    columns = zip(
        served["n_best_answers"],
        *(served[f"n_best_{name}"] for name in ("starts", "ends", "start_logits", "end_logits")),
    )
    spans = [
        Span(text.decode("utf-8"), int(start), int(end), float(start_logit), float(end_logit))
        for text, start, end, start_logit, end_logit in columns
    ]
    return Decoded(spans[: served["num_answers"]], Span("", 0, 0, *map(float, served["null_logits"])))


def n_best_list(decoded: Decoded, with_null: bool) -> list[dict[str, Any]]:
    """The entries of one question in run_squad.py's n-best file, best first. Probabilities are over the list."""
    spans = sorted(
        [*decoded.spans, *([decoded.null] if with_null or not decoded.spans else [])], key=lambda s: -s.score
    )
    return [
        {
            "text": span.text,
            "probability": float(probability),
            "start_logit": span.start_logit,
            "end_logit": span.end_logit,
            "start": span.start,
            "end": span.end,
        }
        for span, probability in zip(spans, softmax([span.score for span in spans]))
    ]


def _decode_block(
    answered: AnsweredQuestions,
    windows: QuestionWindows,
    logits: Sequence[Sequence[np.ndarray]],
    max_answer_length: int,
    n_best: int,
    block: tuple[int, int],
    spans_per_answer: int,
) -> tuple[list[Decoded], np.ndarray]:
    """(`Decoded` of each question in `block` [first, end); `best_answers`' `are_all` of each, bool [questions])."""
    first, end = block
    first_rows = windows.first_rows[first : end + 1]
    rows = slice(first_rows[0], first_rows[-1])
    passage_numbers = [answered.questions[number].passage for number in range(first, end)]
    texts = [answered.passages[passage] for passage in passage_numbers]
    with tf.device("CPU"):
        # In float64: in float32, sums of different logits may round to the same value.
        start_logits, end_logits = (_passage_logits(values[rows], windows, rows) for values in logits)
        starts_at_cls, ends_at_cls = (np.array([row[0] for row in values[rows]], np.float64) for values in logits)
        columns = (
            np.repeat(np.arange(end - first), np.diff(first_rows)),
            windows.begins[rows],
            windows.lengths[rows],
            first_rows - first_rows[0],
        )
        block_windows = PassageWindows(*(tf.constant(column, tf.int32) for column in columns))
        passages = Passages.of(tf.constant(texts), *_offsets(windows.passages, passage_numbers))
        best = best_answers(
            start_logits, end_logits, block_windows, passages, max_answer_length, n_best, spans_per_answer
        )
        null = no_answer(starts_at_cls, ends_at_cls, block_windows).numpy()
    names = ("starts", "ends", "start_logits", "end_logits")
    spans = zip(*(best[name].numpy().tolist() for name in names), strict=True)
    answers = [
        Decoded(
            [Span(text[span[0] : span[1]], *span) for span in itertools.islice(zip(*columns, strict=True), count)],
            Span("", 0, 0, *null_logits),
        )
        for text, columns, count, null_logits in zip(texts, spans, best["counts"].numpy(), null.tolist(), strict=True)
    ]
    return answers, best["are_all"].numpy()


def _passage_logits(logits: Sequence[np.ndarray], windows: QuestionWindows, rows: slice) -> np.ndarray:
    """The logits of the passage's pieces in each row, float64 [rows, pieces], padded with 0."""
    firsts, lengths = windows.rows.second_starts[rows], windows.lengths[rows]
    padded = np.zeros((len(lengths), max(lengths.max(), 1)))
    parts = [row[first : first + length] for row, first, length in zip(logits, firsts, lengths, strict=True)]
    padded[np.arange(padded.shape[1]) < lengths[:, np.newaxis]] = np.concatenate(parts)
    return padded


def _offsets(pieces: Pieces, passages: Sequence[int]) -> Iterator[tf.RaggedTensor]:
    """Yields the starts and then the ends of the pieces of these passages, `[passages, (pieces)]`."""
    parts = [slice(pieces.splits[passage], pieces.splits[passage + 1]) for passage in passages]
    lengths = pieces.lengths[np.asarray(passages)]
    for offsets in (pieces.starts, pieces.ends):
        yield tf.RaggedTensor.from_row_lengths(np.concatenate([offsets[part] for part in parts]), lengths)


def _checked(rows: Sequence[np.ndarray], name: str, lengths: np.ndarray) -> Sequence[np.ndarray]:
    if len(rows) != len(lengths) or any(len(row) != length for row, length in zip(rows, lengths)):
        raise ValueError(f"{name}: needs an array of the row's length for each of {len(lengths)} rows.")
    require_numbers(rows, "windows")
    return rows
