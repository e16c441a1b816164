"""The best answers in the windows of passages."""

from typing import NamedTuple

import tensorflow as tf

from keras_bert.inputs.passage_windows import PassageWindows
from keras_bert.inputs.windows import window_of_most_context

_SPANS_PER_ANSWER = 8
_ROW_FACTOR = -7046029254386353131  # 2**64 divided by the golden ratio.


class Passages(NamedTuple):
    """Texts that answers are extracted from, and their pieces, sorted by text.

    Attributes:
        code_points: int32 [characters], of all texts.
        first_characters: int32 [batch], where each text starts in `code_points`.
        first_pieces: int32 [batch], where each text's pieces start.
        starts, ends: int32 [pieces], the offsets of each piece in its text, in code points.
    """

    code_points: tf.Tensor
    first_characters: tf.Tensor
    first_pieces: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor

    @classmethod
    def of(cls, texts: tf.Tensor, starts: tf.RaggedTensor, ends: tf.RaggedTensor) -> "Passages":
        """From strings `[batch]` and the offsets of their pieces from the tokenizer."""
        decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
        # Normalization can reorder marks and so leave a piece with no character between its offsets.
        ends = tf.maximum(ends.values, starts.values + 1)
        first_characters, first_pieces = (tf.cast(r.row_splits[:-1], tf.int32) for r in (decoded, starts))
        return cls(decoded.values, first_characters, first_pieces, starts.values, ends)

    def cut(self, starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
        """The texts between offsets in the passages, int32 [batch, n]: string [batch, n]."""
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
    spans_per_answer: int = _SPANS_PER_ANSWER,
) -> dict[str, tf.Tensor]:
    """The `count` best answers with different texts to every question, best first.

    A span is valid if it lies in the passage, has at most `longest` pieces, and starts in the window that gives its
    first piece the most context. run_squad.py crosses the best starts with the best ends; here every valid span is
    compared, so that none is missed whose start or end alone is not among the best.

    Args:
        start_logits, end_logits: float32 or float64 [windows, pieces], of the passage's pieces in each window; others
            are ignored.
        windows: the windows.
        passages: the passage of each question.
        longest: the maximum number of pieces of an answer.
        count: the number of answers.
        spans_per_answer: the number of best spans considered for each answer: several may have the same text, and only
            the best of them counts.

    Returns: `texts` string, `starts` and `ends` int32 (code points), `start_logits` and `end_logits`, each
        [batch, count], padded with "" and 0; `counts` int32 [batch]; `are_all` bool [batch], whether every valid span
        was considered.
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
    """The logits of [CLS] in the window of each question where their sum is lowest: [batch, 2].

    Args:
        start_logits, end_logits: [windows], for [CLS].
        windows: the windows.
    """
    sums = start_logits + end_logits
    is_lowest = tf.equal(sums, tf.gather(tf.math.segment_min(sums, windows.question), windows.question))
    number = tf.range(tf.size(sums))
    window = tf.math.segment_min(tf.where(is_lowest, number, tf.size(sums) - 1), windows.question)
    return tf.stack([tf.gather(start_logits, window), tf.gather(end_logits, window)], axis=1)


def _owned(windows: PassageWindows, passages: Passages, pieces: tf.Tensor) -> tf.Tensor:
    """Whether a window gives a piece the most context: [windows, pieces] bool.

    A window gives a piece as much context as there is on its narrower side, plus a hundredth of its own length
    (run_squad.py, `_check_is_max_context`, here in whole hundredths); of equal ones the first counts.
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
    """Like `tf.gather`, but 0 if there are no values at all."""
    return tf.gather(tf.concat([values, tf.zeros([1], values.dtype)], axis=0), places)


def _best_places(scores: tf.Tensor, windows: PassageWindows, count: int) -> tuple[tf.Tensor, tf.Tensor]:
    """`(scores, places)`, [batch, count] each: every passage's best scores of `[windows, n]`, and their indices in the
    flattened scores; padded with -inf and 0. Equal scores stay in order.

    Nothing is padded to the passage with the most windows, which may have thousands where others have one.
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
    """The first `count` of `values` `{name: [batch, n]}` after dropping those whose text occurred before."""
    # Comparing 62-bit hashes is faster than comparing texts.
    hashes = tf.strings.to_hash_bucket_fast(texts, 2**62)
    batch = tf.broadcast_to(tf.range(tf.shape(texts)[0])[:, tf.newaxis], tf.shape(texts))
    # One number for text and row, distinct as far as hashes are: the factor is odd, and products wrap.
    keys = tf.reshape(hashes + tf.cast(batch, tf.int64) * _ROW_FACTOR, [-1])
    distinct, group = tf.unique(keys)
    number = tf.range(tf.size(keys))
    is_first = tf.equal(number, tf.gather(tf.math.unsorted_segment_min(number, group, tf.size(distinct)), group))
    kept = is_there & tf.reshape(is_first, tf.shape(texts))
    ranks = tf.where(kept, tf.cumsum(tf.cast(kept, tf.int32), axis=1) - 1, count)
    taken = tf.where(ranks < count)
    targets = tf.stack([tf.gather_nd(batch, taken), tf.gather_nd(ranks, taken)], axis=1)
    shape = [tf.shape(texts)[0], count]
    # Strings cannot be scattered, so their indices are.
    source = tf.tensor_scatter_nd_update(tf.fill(shape, -1), targets, tf.cast(taken[:, 1], tf.int32))
    chosen = {name: _or_nothing(value, source) for name, value in values.items()}
    return {**chosen, "counts": tf.reduce_sum(tf.cast(source >= 0, tf.int32), axis=1)}


def _or_nothing(values: tf.Tensor, source: tf.Tensor) -> tf.Tensor:
    """`values[row, source]`, with "" or 0 where the source is -1."""
    nothing = tf.constant("" if values.dtype == tf.string else 0, values.dtype)
    values = tf.pad(values, [[0, 0], [1, 0]], constant_values=nothing)
    return tf.gather(values, source + 1, batch_dims=1)
