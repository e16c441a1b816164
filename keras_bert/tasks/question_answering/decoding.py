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

from keras_bert.data.windows import blocks
from keras_bert.inference.texts import require_numbers
from keras_bert.inputs.windows import window_of_most_context
from keras_bert.tasks.question_answering.data import AnsweredQuestions
from keras_bert.tasks.question_answering.windows import PassageWindows, Pieces, QuestionWindows

_ROW_FACTOR = -7046029254386353131  # 2**64 divided by the golden ratio.


class Passages(NamedTuple):
    """The passages of a batch as flat arrays: their characters, and the offsets of their pieces.

    Attributes:
        code_points: int32 [characters], the characters of all passages.
        first_characters: int32 [batch], where each passage starts in `code_points`.
        first_pieces: int32 [batch], where each passage starts in `starts` and `ends`.
        starts, ends: int32 [pieces], the offsets of each piece in its passage, in code points.
    """

    code_points: tf.Tensor
    first_characters: tf.Tensor
    first_pieces: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor

    @classmethod
    def of(cls, texts: tf.Tensor, starts: tf.RaggedTensor, ends: tf.RaggedTensor) -> "Passages":
        """Builds them from strings `[batch]` and the tokenizer's offsets of their pieces."""
        decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
        # Normalization can reorder combining marks and so leave no character between the offsets of a piece.
        ends = tf.maximum(ends.values, starts.values + 1)
        first_characters, first_pieces = (tf.cast(r.row_splits[:-1], tf.int32) for r in (decoded, starts))
        return cls(decoded.values, first_characters, first_pieces, starts.values, ends)

    def cut(self, starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
        """The substrings of each passage, string [batch, n], between offsets int32 [batch, n]."""
        begins = self.first_characters[:, tf.newaxis]
        characters = tf.ragged.range(tf.reshape(begins + starts, [-1]), tf.reshape(begins + ends, [-1]))
        values = tf.gather(self.code_points, characters.values)
        texts = tf.strings.unicode_encode(characters.with_values(values), "UTF-8")
        return tf.reshape(texts, tf.shape(starts))


def best_answers(
    start_logits: tf.Tensor,
    end_logits: tf.Tensor,
    windows: PassageWindows,
    passages: Passages,
    longest: int,
    count: int,
    spans_per_answer: int = 8,
) -> dict[str, tf.Tensor]:
    """The `count` best answers to each question, best first, no two with the same text.

    A span is valid if it lies in the passage, has at most `longest` pieces, and starts in the window that gives its
    first piece the most context. run_squad.py combines the best starts with the best ends and misses a good span whose
    start or end alone is not among them; here every valid span is scored.

    Args:
        start_logits, end_logits: float32 or float64 [windows, pieces], for the pieces of the passage in each window;
            columns past the window's length are ignored.
        passages: the passage of each question.
        longest: the maximum length of an answer in pieces.
        count: the number of answers per question.
        spans_per_answer: how many spans to consider for each answer. Spans with the same text count once, with the best
            score.

    Returns: `texts` string, `starts` and `ends` int32 (code points), `start_logits` and `end_logits`, each
        [batch, count], padded with "" and 0; `counts` int32 [batch], the number of answers; `are_all` bool [batch],
        whether every valid span was considered.
    """
    pieces = tf.shape(start_logits)[1]
    inside = tf.range(pieces) < windows.lengths[:, tf.newaxis]
    legal_starts = tf.where(inside & _owned(windows, passages, pieces), start_logits, -float("inf"))
    ends = tf.pad(
        tf.where(inside, end_logits, -float("inf")), [[0, 0], [0, longest - 1]], constant_values=-float("inf")
    )
    last = tf.range(pieces)[:, tf.newaxis] + tf.range(longest)
    spans = legal_starts[..., tf.newaxis] + tf.gather(ends, last, axis=1)  # [windows, pieces, longest]

    scores, places = _best_places(tf.reshape(spans, [-1, pieces * longest]), windows, spans_per_answer * count)
    is_there = scores > -float("inf")
    places = tf.where(is_there, places, 0)

    first, more = places // longest, places % longest
    window, first = first // pieces, first % pieces
    begin = tf.gather(passages.first_pieces, tf.gather(windows.question, window)) + tf.gather(windows.begins, window)
    piece = begin + first
    starts = tf.where(is_there, _at(passages.starts, piece), 0)
    stops = tf.where(is_there, _at(passages.ends, piece + more), 0)
    texts = passages.cut(starts, stops)
    values = {
        "texts": texts,
        "starts": starts,
        "ends": stops,
        "start_logits": tf.where(is_there, tf.gather_nd(start_logits, tf.stack([window, first], axis=-1)), 0.0),
        "end_logits": tf.where(is_there, tf.gather_nd(ends, tf.stack([window, first + more], axis=-1)), 0.0),
    }
    return {**_first_of_equal(texts, is_there, values, count), "are_all": ~is_there[:, -1]}


def no_answer(start_logits: tf.Tensor, end_logits: tf.Tensor, windows: PassageWindows) -> tf.Tensor:
    """The start and end logits of "no answer", [batch, 2]: [CLS]'s logits in the window where their sum is lowest.

    Args:
        start_logits, end_logits: [windows], the logits of [CLS].
    """
    sums = start_logits + end_logits
    is_lowest = tf.equal(sums, tf.gather(tf.math.segment_min(sums, windows.question), windows.question))
    number = tf.range(tf.size(sums))
    window = tf.math.segment_min(tf.where(is_lowest, number, tf.size(sums) - 1), windows.question)
    return tf.stack([tf.gather(start_logits, window), tf.gather(end_logits, window)], axis=1)


def _owned(windows: PassageWindows, passages: Passages, pieces: tf.Tensor) -> tf.Tensor:
    """Whether a window is the one that gives a piece the most context: [windows, pieces] bool.

    The context is the number of pieces on the shorter side, plus a hundredth of the window's length (run_squad.py,
    `_check_is_max_context`, here in units of a hundredth). The first window wins a tie.
    """
    place = tf.range(pieces)
    length = windows.lengths[:, tf.newaxis]
    context = 100 * tf.minimum(place, length - 1 - place) + length
    piece = (tf.gather(passages.first_pieces, windows.question) + windows.begins)[:, tf.newaxis] + place
    piece = tf.where(place < length, piece, -1)
    window = tf.range(tf.size(length))[:, tf.newaxis]
    best = window_of_most_context(context, window, tf.size(length), piece, tf.size(passages.starts))
    return tf.equal(window, _at(best, tf.maximum(piece, 0))) & (piece >= 0)


def _at(values: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """`tf.gather`, or zeros if `values` is empty."""
    return tf.gather(tf.concat([values, tf.zeros([1], values.dtype)], axis=0), places)


def _best_places(scores: tf.Tensor, windows: PassageWindows, count: int) -> tuple[tf.Tensor, tf.Tensor]:
    """The best scores of each passage, and their indices in the flattened `scores` [windows, n]: [batch, count] each.

    Padded with -inf and 0. Ties keep their order. Passages are not padded to the most windows, because one passage may
    have thousands while the others have one.
    """
    width = tf.shape(scores)[1]
    best, inside = tf.math.top_k(scores, tf.minimum(width, count))
    best_of_window = tf.shape(best)[1]
    places = tf.reshape(inside + tf.range(tf.shape(scores)[0])[:, tf.newaxis] * width, [-1])
    best = tf.reshape(best, [-1])
    order = tf.argsort(best, direction="DESCENDING", stable=True)
    passage = tf.gather(tf.repeat(windows.question, best_of_window), order)
    order = tf.gather(order, tf.argsort(passage, stable=True))
    splits = windows.first_windows[:, tf.newaxis] * best_of_window
    rank = splits[:-1] + tf.range(count)
    is_there = rank < splits[1:]
    source = tf.gather(order, tf.where(is_there, rank, 0))
    return tf.where(is_there, tf.gather(best, source), -float("inf")), tf.where(is_there, tf.gather(places, source), 0)


def _first_of_equal(
    texts: tf.Tensor, is_there: tf.Tensor, values: dict[str, tf.Tensor], count: int
) -> dict[str, tf.Tensor]:
    """The first `count` of `values` `{name: [batch, n]}`, without repeated texts."""
    # Comparing 62-bit hashes is faster than comparing texts.
    hashes = tf.strings.to_hash_bucket_fast(texts, 2**62)
    batch = tf.broadcast_to(tf.range(tf.shape(texts)[0])[:, tf.newaxis], tf.shape(texts))
    # One key per text and row. Multiplication by an odd factor modulo 2**64 keeps different rows apart.
    keys = tf.reshape(hashes + tf.cast(batch, tf.int64) * _ROW_FACTOR, [-1])
    distinct, group = tf.unique(keys)
    number = tf.range(tf.size(keys))
    is_first = tf.equal(number, tf.gather(tf.math.unsorted_segment_min(number, group, tf.size(distinct)), group))
    kept = is_there & tf.reshape(is_first, tf.shape(texts))
    ranks = tf.where(kept, tf.cumsum(tf.cast(kept, tf.int32), axis=1) - 1, count)
    taken = tf.where(ranks < count)
    targets = tf.stack([tf.gather_nd(batch, taken), tf.gather_nd(ranks, taken)], axis=1)
    shape = [tf.shape(texts)[0], count]
    # TensorFlow cannot scatter strings, so this scatters their indices.
    source = tf.tensor_scatter_nd_update(tf.fill(shape, -1), targets, tf.cast(taken[:, 1], tf.int32))
    chosen = {name: _or_nothing(value, source) for name, value in values.items()}
    return {**chosen, "counts": tf.reduce_sum(tf.cast(source >= 0, tf.int32), axis=1)}


def _or_nothing(values: tf.Tensor, source: tf.Tensor) -> tf.Tensor:
    """`values[row, source]`, with "" or 0 where the source is -1."""
    nothing = tf.constant("" if values.dtype == tf.string else 0, values.dtype)
    values = tf.pad(values, [[0, 0], [1, 0]], constant_values=nothing)
    return tf.gather(values, source + 1, batch_dims=1)


_PIECES_AT_ONCE = 3 << 15  # 256 windows of 384 pieces.
_FIRST_SPANS_PER_ANSWER = 4  # Few questions have enough spans with equal texts to need more.


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
        null: "no answer" as a `Span`: the empty text, with the logits of [CLS] in the window of their lowest sum.
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
    """Yields the `Decoded` of each question in order; see `best_answers`.

    Args:
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
        answers, are_all = decode_block(block, _FIRST_SPANS_PER_ANSWER)
        for question, answer, is_final in zip(range(*block), answers, are_all, strict=True):
            spans_per_answer = _FIRST_SPANS_PER_ANSWER
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
    """The entries of one question in run_squad.py's n-best file, best first. Their probabilities sum to 1."""
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
