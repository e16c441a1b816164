"""Pieces to the encoder's inputs, in the graph: truncated as in training, and padded to one of a few lengths."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from keras_bert.text.vocabulary import Vocabulary


class Rows(NamedTuple):
    """Rows of pieces in one flat tensor: row `i` is `values[starts[i] : starts[i] + lengths[i]]`.

    With `heads` and `gaps`, the `gaps[i]` pieces after the first `heads[i]` are skipped and not counted.

    Attributes:
        values: int32 `[pieces]`.
        starts, lengths, heads, gaps: int32 `[batch]`.
    """

    values: tf.Tensor
    starts: tf.Tensor
    lengths: tf.Tensor
    heads: tf.Tensor | None = None
    gaps: tf.Tensor | None = None

    def places(self, inside: tf.Tensor) -> tf.Tensor:
        """The indices in `values` of the pieces at positions `inside` `[batch, seq]` of their rows."""
        places = inside + self.starts[:, tf.newaxis]
        if self.heads is None or self.gaps is None:
            return places
        return places + tf.where(inside >= self.heads[:, tf.newaxis], self.gaps[:, tf.newaxis], 0)

    def taken(self, numbers: tf.Tensor) -> "Rows":
        """The rows with these indices, int32 `[rows]`; only for `Rows` without gaps."""
        return Rows(self.values, tf.gather(self.starts, numbers), tf.gather(self.lengths, numbers))

    @classmethod
    def of(cls, ragged: tf.RaggedTensor) -> "Rows":
        """From `[batch, (pieces)]`, the output of a tokenizer."""
        splits = tf.cast(ragged.row_splits, tf.int32)
        return cls(ragged.values, splits[:-1], splits[1:] - splits[:-1])


def cut(rows: Rows, longest: int | tf.Tensor) -> Rows:
    """Truncates rows to their first `longest` pieces."""
    return rows._replace(lengths=tf.minimum(rows.lengths, longest))


def cut_pairs(firsts: Rows, seconds: Rows, longest: int) -> tuple[Rows, Rows]:
    """Truncates pairs to `longest` pieces together, by the rule of `inference.encoder_inputs.pair_lengths`."""
    kept = tf.minimum(firsts.lengths, tf.maximum(longest - seconds.lengths, longest - longest // 2))
    return firsts._replace(lengths=kept), cut(seconds, longest - kept)


def head_and_tail(rows: Rows, kept: Rows) -> Rows:
    """Shortens each row to the length of that in `kept`: a quarter from its beginning, the rest from its end."""
    return rows._replace(lengths=kept.lengths, heads=kept.lengths // 4, gaps=rows.lengths - kept.lengths)


def windows(rows: Rows, room: tf.Tensor, stride: int, last_is_full: bool = True) -> tuple[Rows, tf.Tensor]:
    """Splits rows that are too long into windows: `(windows, int32 [windows] the row of each)`.

    Args:
        rows: rows without gaps.
        room: int32 [batch], the maximum length of each row's windows.
        stride: pieces from the start of one window to the start of the next.
        last_is_full: whether the last window of a row starts early, so that it is as long as the others.
    """
    step = tf.maximum(tf.minimum(stride, room), 1)
    last = tf.maximum(rows.lengths - room, 0)
    counts = (last + step - 1) // step + 1
    row = tf.repeat(tf.range(tf.size(counts)), counts)
    number = tf.range(tf.size(row)) - tf.gather(tf.cumsum(counts, exclusive=True), row)
    begins = number * tf.gather(step, row)
    if last_is_full:
        begins = tf.minimum(begins, tf.gather(last, row))
    lengths = tf.minimum(tf.gather(rows.lengths, row) - begins, tf.gather(room, row))
    return Rows(rows.values, tf.gather(rows.starts, row) + begins, lengths), row


def windows_of_pairs(firsts: Rows, seconds: Rows, longest: int, stride: int) -> tuple[Rows, Rows, tf.Tensor]:
    """Windows over the second text of a pair, each with the first text, truncated to half the room; see `windows`.

    Returns: `(firsts, seconds, int32 [windows] the pair of each)`.
    """
    is_long = firsts.lengths + seconds.lengths > longest
    beside = tf.minimum(firsts.lengths, tf.maximum(longest // 2, longest - seconds.lengths))
    kept = tf.where(is_long, beside, firsts.lengths)
    seconds, pair = windows(seconds, longest - kept, stride)
    return firsts._replace(lengths=kept).taken(pair), seconds, pair


def window_of_most_context(
    context: tf.Tensor, window: tf.Tensor, windows: tf.Tensor, place: tf.Tensor, places: tf.Tensor
) -> tf.Tensor:
    """For each place, the window that gives it the most context, the first of equal ones: int32 [places].

    Args:
        context: int32, any shape: how much context a window gives a place.
        window: int32, broadcastable to that shape: the index of the window.
        windows: int32 scalar: the number of windows.
        place: int32, the shape of `context`: the index of the place; negative ones are ignored.
        places: int32 scalar: the number of places.
    """
    windows = tf.cast(windows, tf.int64)
    # Both in one number, whose maximum decides.
    rank = tf.cast(context, tf.int64) * windows + (windows - 1 - tf.cast(window, tf.int64))
    best = tf.math.unsorted_segment_max(rank, place, places)
    return tf.cast(windows - 1 - best % windows, tf.int32)


def padded_lengths(longest: int, finest: int) -> list[int]:
    """The lengths that batches are padded to: four between successive powers of two, the last one `longest`.

    So less than a quarter of the computation goes into padding beyond the longest text.

    Args:
        longest: the maximum number of tokens of a text.
        finest: the smallest length, and the distance between the smallest lengths.
    """
    lengths, step = [finest], finest
    while lengths[-1] < longest:
        step = step * 2 if lengths[-1] == 8 * step else step
        lengths.append(lengths[-1] + step)
    return [*lengths[:-1], longest]


def doubling_lengths(longest: int) -> list[int]:
    """16, 32, 64 and so on up to `longest`: the few lengths that XLA compiles and that a server warms up."""
    return [*itertools.takewhile(lambda length: length < longest, (2**power for power in itertools.count(4))), longest]


def padded_length(lengths: Sequence[int], needed: tf.Tensor) -> tf.Tensor:
    """The first of the ascending `lengths` that is at least `needed` (int32 scalar), or else the last."""
    place = tf.searchsorted(tf.constant(lengths[:-1], tf.int32), needed[tf.newaxis])[0]
    return tf.gather(tf.constant(lengths, tf.int32), place)


def pack(segments: Sequence[Rows], vocabulary: Vocabulary, lengths: Sequence[int]) -> dict[str, tf.Tensor]:
    """[CLS] first [SEP] or [CLS] first [SEP] second [SEP] for every row.

    Args:
        segments: the first and, for pairs, the second texts, truncated to fit into the last of `lengths` with their
            special tokens.
        vocabulary: the vocabulary of the pieces.
        lengths: see `padded_length`.

    Returns: the encoder's inputs, each `[batch, seq]` int32.
    """
    # The special tokens come before all pieces, so that one gather fetches everything.
    values = [tf.constant([vocabulary.cls_id, vocabulary.sep_id, vocabulary.pad_id], tf.int32)]
    cls, sep, pad = range(3)
    totals = 1 + tf.add_n([rows.lengths + 1 for rows in segments])[:, tf.newaxis]
    seq = padded_length(lengths, tf.reduce_max(tf.concat([tf.reshape(totals, [-1]), [1]], axis=0)))
    places = tf.range(seq)[tf.newaxis]
    sources = tf.where(tf.equal(places, 0), cls, pad)
    offset, start, types = 3, 1, []
    for rows in segments:
        inside = places - start
        length = rows.lengths[:, tf.newaxis]
        is_piece = (inside >= 0) & (inside < length)
        sources = tf.where(is_piece, rows.places(inside) + offset, sources)
        sources = tf.where(tf.equal(inside, length), sep, sources)
        types.append((inside >= 0) & (places < totals))
        values.append(rows.values)
        offset += tf.size(rows.values)
        start += length + 1
    later = [tf.cast(is_later, tf.int32) for is_later in types[1:]]
    return {
        "input_word_ids": tf.gather(tf.concat(values, axis=0), sources),
        "input_mask": tf.cast(places < totals, tf.int32),
        "input_type_ids": tf.add_n(later) if later else tf.zeros_like(sources),
    }
