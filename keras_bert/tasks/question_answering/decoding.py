"""From the scores of starts and ends to the best answers, cut from the passages as they are.

Source: run_squad.py of google-research/bert (write_predictions). There the best starts are crossed with the best ends;
here every legal span is judged, so that a span is not missed whose two ends are not among the best alone.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from keras_bert.inference.finite_outputs import require_numbers
from keras_bert.tasks.question_answering.windows import window_owners

_ENOUGH = 4  # Times as many spans as answers are sorted at first: some have the same text.


class Span(NamedTuple):
    """An answer: its text, where it stands in the passage (code points), and the logits of its ends."""

    text: str
    start: int
    end: int
    start_logit: float
    end_logit: float

    @property
    def score(self):
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
    def best_text(self):
        return self.spans[0].text if self.spans else ""

    @property
    def null_odds(self):
        """By how much the score of no answer is above that of the best one (`score_diff` in run_squad.py)."""
        return self.null.score - (self.spans[0].score if self.spans else 0.0)


def decode(answered, windows, outputs, max_answer_length=30, n_best=20):
    """Iterates over one `Decoded` for each question.

    A span is legal that lies in the passage, ends no more than `max_answer_length` pieces after it begins, and begins
    in the window that gives its first piece the most context.

    Args:
        answered: the `AnsweredQuestions`.
        windows: their `QuestionWindows`.
        outputs: `{"start_logits": …, "end_logits": …}`, each a list with one array [length] for each row.
        max_answer_length: in pieces.
        n_best: how many answers.

    Raises:
        UserError: a logit is no finite number.
        ValueError: the outputs are not of these rows.
    """
    starts, ends = (_checked(outputs[name], name, windows.rows.lengths) for name in ("start_logits", "end_logits"))
    pieces = windows.passages
    for number, question in enumerate(answered.questions):
        rows = slice(windows.first_rows[number], windows.first_rows[number + 1])
        begins, lengths = windows.begins[rows], windows.lengths[rows]
        owners = window_owners(begins, lengths)
        candidates = _Candidates(max_answer_length)
        null = Span("", 0, 0, np.inf, np.inf)
        for window, row in enumerate(range(rows.start, rows.stop)):
            first, begin, length = windows.rows.second_starts[row], begins[window], lengths[window]
            inside = slice(first, first + length)
            candidates.add(starts[row][inside], ends[row][inside], owners[begin : begin + length] == window, begin)
            null = min(null, Span("", 0, 0, float(starts[row][0]), float(ends[row][0])), key=lambda span: span.score)
        passage = answered.passages[question.passage]
        of_passage = slice(pieces.splits[question.passage], pieces.splits[question.passage + 1])
        spans = candidates.best(n_best, passage, pieces.starts[of_passage], pieces.ends[of_passage])
        yield Decoded(spans, null)


def decoded(served):
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


def n_best_list(decoded, with_null):
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


class _Candidates:
    """The legal spans of one passage with their scores."""

    def __init__(self, max_answer_length):
        self._longest = max_answer_length
        self._windows = []

    def add(self, starts, ends, may_start, begin):
        """The spans of one window: logits [length], which pieces may be the first, and where the window begins."""
        longest = min(self._longest, len(ends))
        if not longest:
            return
        padded = np.concatenate([ends.astype(np.float64), np.full(longest - 1, -np.inf)])
        scores = starts.astype(np.float64)[:, None] + np.lib.stride_tricks.sliding_window_view(padded, longest)
        first, more = np.nonzero(np.isfinite(scores) & may_start[:, None])
        last = first + more
        self._windows.append((scores[first, more], begin + first, begin + last, starts[first], ends[last]))

    def best(self, count, passage, piece_starts, piece_ends):
        """The `count` best `Span`s whose texts differ; of equal scores the first in the passage, the shorter first."""
        if not self._windows:
            return []
        scores, firsts, lasts, start_logits, end_logits = map(np.concatenate, zip(*self._windows))
        taken = _ENOUGH * count
        while True:
            found = {}
            for place in _largest(scores, taken):
                start, end = int(piece_starts[firsts[place]]), int(piece_ends[lasts[place]])
                text = passage[start:end]
                if text not in found:
                    found[text] = Span(text, start, end, float(start_logits[place]), float(end_logits[place]))
                    if len(found) == count:
                        break
            if len(found) == count or taken >= len(scores):
                return list(found.values())
            taken *= _ENOUGH


def _largest(scores, count):
    """Places of the `count` largest and of those equal to the last of them, largest first, equal ones in order."""
    if count < len(scores):
        places = np.flatnonzero(scores >= np.partition(scores, len(scores) - count)[len(scores) - count])
    else:
        places = np.arange(len(scores))
    return places[np.argsort(-scores[places], kind="stable")]


def _checked(rows, name, lengths):
    if len(rows) != len(lengths) or any(len(row) != length for row, length in zip(rows, lengths)):
        raise ValueError(f"{name}: needs an array of each row's length for {len(lengths)} rows. Received: others.")
    require_numbers(rows, "windows")
    return rows
