"""From the logits of starts and ends to the best answers, cut from the passages.

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
_SPANS_PER_ANSWER = 4  # At first; few questions have so many spans with the same texts that they need more.


class Span(NamedTuple):
    """An answer: its text, where it stands in the passage (code points), and the logits of its ends."""

    text: str
    start: int
    end: int
    start_logit: float
    end_logit: float

    @property
    def score(self) -> float:
        return self.start_logit + self.end_logit


class Decoded(NamedTuple):
    """What a model says to one question.

    Attributes:
        spans: the best `Span`s with texts that differ, best first; none where the passage has no pieces.
        null: the `Span` of no answer: an empty text with the logits of [CLS], in the window where they are lowest.
    """

    spans: list[Span]
    null: Span

    @property
    def best_text(self) -> str:
        return self.spans[0].text if self.spans else ""

    @property
    def null_odds(self) -> float:
        """By how much the score of no answer is above that of the best one (`score_diff` in run_squad.py)."""
        return self.null.score - (self.spans[0].score if self.spans else 0.0)


def decode(
    answered: AnsweredQuestions,
    windows: QuestionWindows,
    outputs: Mapping[str, Sequence[np.ndarray]],
    max_answer_length: int = 30,
    n_best: int = 20,
) -> Iterator[Decoded]:
    """Iterates over one `Decoded` for each question; see `inference.span_decoding.best_answers`.

    Args:
        answered: the questions.
        windows: their windows.
        outputs: `{"start_logits": …, "end_logits": …}`, each a list with one array [length] for each row.
        max_answer_length: in pieces.
        n_best: the number of answers to a question.

    Raises:
        UserError: a logit is not finite.
        ValueError: the outputs are not of these rows.
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
    """The `Decoded` of what a `ServingFunction` gives for one question."""
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
    """The answers as run_squad.py writes them, best first: dicts with the probability among those listed."""
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
    """(the answers to the questions from first to last, exclusive; bool [questions], see `best_answers`' `are_all`)."""
    first, end = block
    first_rows = windows.first_rows[first : end + 1]
    rows = slice(first_rows[0], first_rows[-1])
    of_block = [answered.questions[number].passage for number in range(first, end)]
    texts = [answered.passages[passage] for passage in of_block]
    with tf.device("CPU"):
        # In float64, because the sums of different float32 logits may be equal in float32.
        start_logits, end_logits = (_passage_logits(values[rows], windows, rows) for values in logits)
        starts_at_cls, ends_at_cls = (np.array([row[0] for row in values[rows]], np.float64) for values in logits)
        columns = (
            np.repeat(np.arange(end - first), np.diff(first_rows)),
            windows.begins[rows],
            windows.lengths[rows],
            first_rows - first_rows[0],
        )
        of_passages = PassageWindows(*(tf.constant(column, tf.int32) for column in columns))
        passages = Passages.of(tf.constant(texts), *_offsets(windows.passages, of_block))
        best = best_answers(
            start_logits, end_logits, of_passages, passages, max_answer_length, n_best, spans_per_answer
        )
        null = no_answer(starts_at_cls, ends_at_cls, of_passages).numpy()
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
    """float64 [rows, pieces]: of the logits of rows, those of the passage's pieces, padded with 0."""
    firsts, lengths = windows.rows.second_starts[rows], windows.lengths[rows]
    padded = np.zeros((len(lengths), max(lengths.max(), 1)))
    parts = [row[first : first + length] for row, first, length in zip(logits, firsts, lengths, strict=True)]
    padded[np.arange(padded.shape[1]) < lengths[:, np.newaxis]] = np.concatenate(parts)
    return padded


def _offsets(pieces: Pieces, passages: Sequence[int]) -> Iterator[tf.RaggedTensor]:
    """The starts and the ends of the pieces of passages, `[passages, (pieces)]` each."""
    parts = [slice(pieces.splits[passage], pieces.splits[passage + 1]) for passage in passages]
    lengths = pieces.lengths[np.asarray(passages)]
    for offsets in (pieces.starts, pieces.ends):
        yield tf.RaggedTensor.from_row_lengths(np.concatenate([offsets[part] for part in parts]), lengths)


def _checked(rows: Sequence[np.ndarray], name: str, lengths: np.ndarray) -> Sequence[np.ndarray]:
    if len(rows) != len(lengths) or any(len(row) != length for row, length in zip(rows, lengths)):
        raise ValueError(f"{name}: needs an array of each row's length for {len(lengths)} rows. Received: others.")
    require_numbers(rows, "windows")
    return rows
