"""The best answers of the windows of passages, in the graph; `tasks.question_answering.decoding` does so in Python."""

from typing import NamedTuple

import tensorflow as tf

from keras_bert.export.packing import window_of_most_context

# Spans that are looked at for one answer: several may have the same text, of which the best one counts.
_SPANS_AN_ANSWER = 8


class PassageWindows(NamedTuple):
    """Windows of passages, those of one passage one after the other.

    Attributes:
        passage: int32 [windows], the passage of each.
        begins: int32 [windows], the place in its passage's pieces at which each begins.
        lengths: int32 [windows], its pieces.
        first_windows: int32 [batch + 1], where the windows of each passage begin.
    """

    passage: tf.Tensor
    begins: tf.Tensor
    lengths: tf.Tensor
    first_windows: tf.Tensor


class Passages(NamedTuple):
    """Texts that answers are cut from, and their pieces, those of one text one after the other.

    Attributes:
        code_points: int32 [characters] of all texts.
        first_characters: int32 [batch], where each text begins in them.
        first_pieces: int32 [batch], where each text's pieces begin.
        starts, ends: int32 [pieces], where each piece stands in its text, in code points.
    """

    code_points: tf.Tensor
    first_characters: tf.Tensor
    first_pieces: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor

    @classmethod
    def of(cls, texts, starts, ends):
        """Of strings `[batch]` and the offsets of their pieces, ragged, as the tokenizer gives them."""
        decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
        # Marks that normalisation puts into another order can leave a piece with no character between its ends.
        ends = tf.maximum(ends.values, starts.values + 1)
        first_characters, first_pieces = (tf.cast(r.row_splits[:-1], tf.int32) for r in (decoded, starts))
        return cls(decoded.values, first_characters, first_pieces, starts.values, ends)

    def cut(self, starts, ends):
        """The texts between places of passages, both int32 [batch, n]: string [batch, n]."""
        begins = self.first_characters[:, tf.newaxis]
        characters = tf.ragged.range(tf.reshape(begins + starts, [-1]), tf.reshape(begins + ends, [-1]))
        values = tf.gather(self.code_points, characters.values)
        texts = tf.strings.unicode_encode(characters.with_values(values), "UTF-8")
        return tf.reshape(texts, tf.shape(starts))


def best_answers(start_logits, end_logits, windows, passages, longest, count):
    """The `count` best answers of every passage whose texts differ, best first.

    A span is legal that lies in the passage, is of at most `longest` pieces, and begins in the window that gives its
    first piece the most context.

    Args:
        start_logits, end_logits: float32 [windows, pieces] of the windows' pieces of the passage, anything behind them.
        windows: `PassageWindows`.
        passages: the `Passages` that they are of.
        longest, count: int.

    Returns a dict: `texts` string, `starts` and `ends` int32 (code points), `start_logits` and `end_logits` float32,
        each [batch, count], "" and 0 where there are fewer; `counts` int32 [batch].
    """
    pieces = tf.shape(start_logits)[1]
    inside = tf.range(pieces) < windows.lengths[:, tf.newaxis]
    legal_starts = tf.where(inside & _owned(windows, passages, pieces), start_logits, -float("inf"))
    ends = tf.pad(
        tf.where(inside, end_logits, -float("inf")), [[0, 0], [0, longest - 1]], constant_values=-float("inf")
    )
    last = tf.range(pieces)[:, tf.newaxis] + tf.range(longest)
    spans = legal_starts[..., tf.newaxis] + tf.gather(ends, last, axis=1)  # [windows, pieces, longest]

    scores, places = _best_places(tf.reshape(spans, [-1, pieces * longest]), windows, _SPANS_AN_ANSWER * count)
    is_there = scores > -float("inf")
    places = tf.where(is_there, places, 0)

    first, more = places // longest, places % longest
    window, first = first // pieces, first % pieces
    begin = tf.gather(passages.first_pieces, tf.gather(windows.passage, window)) + tf.gather(windows.begins, window)
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
    return _first_of_equal(texts, is_there, values, count)


def no_answer(start_logits, end_logits, windows):
    """The logits of [CLS] in the window where their sum is lowest: float32 [batch, 2].

    Args:
        start_logits, end_logits: float32 [windows], those of [CLS].
        windows: `PassageWindows`.
    """
    sums = start_logits + end_logits
    is_lowest = tf.equal(sums, tf.gather(tf.math.segment_min(sums, windows.passage), windows.passage))
    number = tf.range(tf.size(sums))
    window = tf.math.segment_min(tf.where(is_lowest, number, tf.size(sums) - 1), windows.passage)
    return tf.stack([tf.gather(start_logits, window), tf.gather(end_logits, window)], axis=1)


def _owned(windows, passages, pieces):
    """[windows, pieces] bool: whether a window gives a piece the most context; see `windows.window_owners` there."""
    place = tf.range(pieces)
    length = windows.lengths[:, tf.newaxis]
    context = 100 * tf.minimum(place, length - 1 - place) + length
    piece = (tf.gather(passages.first_pieces, windows.passage) + windows.begins)[:, tf.newaxis] + place
    piece = tf.where(place < length, piece, -1)
    window = tf.range(tf.size(length))[:, tf.newaxis]
    best = window_of_most_context(context, window, tf.size(length), piece, tf.size(passages.starts))
    return tf.equal(window, _at(best, tf.maximum(piece, 0))) & (piece >= 0)


def _at(values, places):
    """Like `tf.gather`, and 0 where there are no values at all."""
    return tf.gather(tf.concat([values, tf.zeros([1], values.dtype)], axis=0), places)


def _best_places(scores, windows, count):
    """`(scores, places)`, [batch, count] each: every passage's best of `[windows, n]`, and where they stand when that
    is flat; behind all of them -inf and 0. Of equal scores the first comes first.

    Nothing is padded to the passage with most windows, which may have thousands beside others' one.
    """
    width = tf.shape(scores)[1]
    best, inside = tf.math.top_k(scores, tf.minimum(width, count))
    best_of_window = tf.shape(best)[1]
    places = tf.reshape(inside + tf.range(tf.shape(scores)[0])[:, tf.newaxis] * width, [-1])
    best = tf.reshape(best, [-1])
    order = tf.argsort(best, direction="DESCENDING", stable=True)
    passage = tf.gather(tf.repeat(windows.passage, best_of_window), order)
    order = tf.gather(order, tf.argsort(passage, stable=True))
    splits = windows.first_windows[:, tf.newaxis] * best_of_window
    rank = splits[:-1] + tf.range(count)
    is_there = rank < splits[1:]
    source = tf.gather(order, tf.where(is_there, rank, 0))
    return tf.where(is_there, tf.gather(best, source), -float("inf")), tf.where(is_there, tf.gather(places, source), 0)


def _first_of_equal(texts, is_there, values, count):
    """The first `count` of those whose text no better one has; `values` are `{name: [batch, n]}`."""
    # Hashes of 64 bits are compared faster than texts.
    hashes = tf.strings.to_hash_bucket_fast(texts, 2**62)
    number = tf.range(tf.shape(texts)[1])
    is_before = number[tf.newaxis] < number[:, tf.newaxis]
    has_better = tf.reduce_any(tf.equal(hashes[:, :, tf.newaxis], hashes[:, tf.newaxis]) & is_before, axis=2)
    kept = is_there & ~has_better
    ranks = tf.where(kept, tf.cumsum(tf.cast(kept, tf.int32), axis=1) - 1, count)
    batch = tf.broadcast_to(tf.range(tf.shape(texts)[0])[:, tf.newaxis], tf.shape(ranks))
    taken = tf.where(ranks < count)
    targets = tf.stack([tf.gather_nd(batch, taken), tf.gather_nd(ranks, taken)], axis=1)
    shape = [tf.shape(texts)[0], count]
    # Strings cannot be scattered, so the number of each in its row is.
    source = tf.tensor_scatter_nd_update(tf.fill(shape, -1), targets, tf.cast(taken[:, 1], tf.int32))
    chosen = {name: _or_nothing(value, source) for name, value in values.items()}
    return {**chosen, "counts": tf.reduce_sum(tf.cast(source >= 0, tf.int32), axis=1)}


def _or_nothing(values, source):
    """`values[row, source]`, and "" or 0 where the source is -1."""
    nothing = tf.constant("" if values.dtype == tf.string else 0, values.dtype)
    values = tf.pad(values, [[0, 0], [1, 0]], constant_values=nothing)
    return tf.gather(values, source + 1, batch_dims=1)
