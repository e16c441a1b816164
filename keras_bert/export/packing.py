"""Pieces to the encoder's inputs, in the graph: cut as in training, and padded to one of a few lengths."""

import itertools
from typing import NamedTuple

import tensorflow as tf


class Rows(NamedTuple):
    """Rows of pieces that lie one behind the other: row `i` is `values[starts[i] : starts[i] + lengths[i]]`.

    With `heads` and `gaps` the `gaps[i]` pieces behind the first `heads[i]` are left out and not counted.

    Attributes:
        values: int32 `[pieces]`.
        starts, lengths, heads, gaps: int32 `[batch]`.
    """

    values: tf.Tensor
    starts: tf.Tensor
    lengths: tf.Tensor
    heads: tf.Tensor | None = None
    gaps: tf.Tensor | None = None

    def places(self, inside):
        """Where in `values` each row's pieces lie whose numbers in the row are `inside` `[batch, seq]`."""
        places = inside + self.starts[:, tf.newaxis]
        if self.heads is None:
            return places
        return places + tf.where(inside >= self.heads[:, tf.newaxis], self.gaps[:, tf.newaxis], 0)

    def taken(self, numbers):
        """The rows of these numbers, int32 `[rows]`; of `Rows` without gaps."""
        return Rows(self.values, tf.gather(self.starts, numbers), tf.gather(self.lengths, numbers))

    @classmethod
    def of(cls, ragged):
        """Of `[batch, (pieces)]`, as tokenizers give it."""
        splits = tf.cast(ragged.row_splits, tf.int32)
        return cls(ragged.values, splits[:-1], splits[1:] - splits[:-1])


def cut(rows, longest):
    """Rows without what is behind their first `longest` pieces."""
    return rows._replace(lengths=tf.minimum(rows.lengths, longest))


def cut_pairs(firsts, seconds, longest):
    """Pairs of at most `longest` pieces together, by the rule of `models.encoder_inputs.pair_lengths`."""
    kept = tf.minimum(firsts.lengths, tf.maximum(longest - seconds.lengths, longest - longest // 2))
    return firsts._replace(lengths=kept), cut(seconds, longest - kept)


def head_and_tail(rows, kept):
    """As many pieces of each row as `kept` has, a quarter from its beginning and the rest from its end."""
    return rows._replace(lengths=kept.lengths, heads=kept.lengths // 4, gaps=rows.lengths - kept.lengths)


def windows(rows, room, stride, last_is_full=True):
    """Windows over rows that are too long: `(Rows of windows, int32 [windows] the row that each is of)`.

    Args:
        rows: `Rows` without gaps.
        room: int32 [batch], the most pieces of each row's windows.
        stride: int, pieces from the beginning of one to that of the next.
        last_is_full: whether the last window of a row begins before its turn, so that it is as long as the others.
    """
    stride = tf.maximum(tf.minimum(stride, room), 1)
    last = tf.maximum(rows.lengths - room, 0)
    counts = (last + stride - 1) // stride + 1
    row = tf.repeat(tf.range(tf.size(counts)), counts)
    number = tf.range(tf.size(row)) - tf.gather(tf.cumsum(counts, exclusive=True), row)
    begins = number * tf.gather(stride, row)
    if last_is_full:
        begins = tf.minimum(begins, tf.gather(last, row))
    lengths = tf.minimum(tf.gather(rows.lengths, row) - begins, tf.gather(room, row))
    return Rows(rows.values, tf.gather(rows.starts, row) + begins, lengths), row


def windows_of_pairs(firsts, seconds, longest, stride):
    """Windows over the second of a pair beside as much of the first as half the room takes; see `windows`.

    Returns: `(firsts, seconds, int32 [windows] the pair that each is of)`.
    """
    is_long = firsts.lengths + seconds.lengths > longest
    beside = tf.minimum(firsts.lengths, tf.maximum(longest // 2, longest - seconds.lengths))
    kept = tf.where(is_long, beside, firsts.lengths)
    seconds, pair = windows(seconds, longest - kept, stride)
    return firsts._replace(lengths=kept).taken(pair), seconds, pair


def window_of_most_context(context, window, windows, place, places):
    """int32 [places]: for each place the window that gives it the most context, of equal ones the first.

    Args:
        context: int32, of any shape, how much context a window gives a place.
        window: int32, of that shape or broadcast to it: which window.
        windows: int32 scalar, how many there are.
        place: int32, of the shape of `context`: which place; those below 0 do not count.
        places: int32 scalar, how many there are.
    """
    windows = tf.cast(windows, tf.int64)
    # One number for both, of which the largest is looked for.
    rank = tf.cast(context, tf.int64) * windows + (windows - 1 - tf.cast(window, tf.int64))
    best = tf.math.unsorted_segment_max(rank, place, places)
    return tf.cast(windows - 1 - best % windows, tf.int32)


def padded_lengths(longest, finest):
    """The lengths that batches are padded to: four from each power of two to the next, the last one `longest`.

    So less than a quarter of the computing goes into padding that the longest text does not need.

    Args:
        longest: the most tokens of a text.
        finest: how far apart the shortest are.
    """
    lengths, step = [finest], finest
    while lengths[-1] < longest:
        step = step * 2 if lengths[-1] == 8 * step else step
        lengths.append(lengths[-1] + step)
    return [*lengths[:-1], longest]


def doubling_lengths(longest):
    """16, 32, 64 and so on up to `longest`: the few lengths at which XLA compiles and a server warms up."""
    return [*itertools.takewhile(lambda length: length < longest, (2**power for power in itertools.count(4))), longest]


def padded_length(lengths, needed):
    """The first of `lengths` (ascending list of int) that is `needed` (int32 scalar) or more; else the last."""
    place = tf.searchsorted(tf.constant(lengths[:-1], tf.int32), needed[tf.newaxis])[0]
    return tf.gather(tf.constant(lengths, tf.int32), place)


def pack(segments, vocabulary, lengths):
    """[CLS] first [SEP] or [CLS] first [SEP] second [SEP] of every row.

    Args:
        segments: list of `Rows`, cut so that a row and its special tokens are within the last of `lengths`.
        vocabulary: the `Vocabulary` that they are of.
        lengths: see `padded_length`.

    Returns: the encoder's dict, each `[batch, seq]` int32.
    """
    # The special tokens stand before all pieces, so that one gather fetches everything.
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
