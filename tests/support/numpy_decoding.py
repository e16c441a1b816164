"""`tasks.question_answering.decoding` in NumPy, question by question: what the tests compare its answers with."""

import numpy as np

from keras_bert.tasks.question_answering.decoding import Decoded, Span

_ENOUGH = 4  # Candidate spans per answer at first, since some have the same text.


def decode_by_numpy(answered, windows, outputs, max_answer_length=30, n_best=20):
    """The `Decoded` of each question, as `decode` gives them."""
    starts, ends = outputs["start_logits"], outputs["end_logits"]
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
