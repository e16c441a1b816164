"""Joins segments into rows in the vocabulary's pattern: [CLS] first [SEP], or [CLS] first [SEP] second [SEP]."""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from keras_bert.data.batches.segments import segment_ids
from keras_bert.text.vocabulary import Vocabulary


class PieceSpans(NamedTuple):
    """One span of pieces per row: row `i` has `values[starts[i] : starts[i] + lengths[i]]`.

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

    @classmethod
    def of(cls, ragged: tf.RaggedTensor) -> "PieceSpans":
        """The spans of `[batch, (pieces)]`, the output of a tokenizer."""
        splits = tf.cast(ragged.row_splits, tf.int32)
        return cls(ragged.values, splits[:-1], splits[1:] - splits[:-1])

    def taken(self, numbers: tf.Tensor) -> "PieceSpans":
        """The spans with these indices, int32 `[rows]`."""
        return self.spread(lambda column: tf.gather(column, numbers))

    def spread(self, change: Callable[[tf.Tensor], tf.Tensor]) -> "PieceSpans":
        """The spans with `change` applied to every `[batch]` column, such as to reshape it to `[batch, 1]`."""
        columns = (self.starts, self.lengths, self.heads, self.gaps)
        return PieceSpans(self.values, *(None if column is None else change(column) for column in columns))

    def indices(self, positions: tf.Tensor) -> tf.Tensor:
        """The indices in `values` of the pieces at `positions` in their spans, to which the columns must broadcast."""
        indices = positions + self.starts
        if self.heads is None or self.gaps is None:
            return indices
        return indices + tf.where(positions >= self.heads, self.gaps, 0)


def padded_lengths(longest: int, finest: int) -> list[int]:
    """The lengths that batches are padded to: four between successive powers of two, the last one `longest`.

    So padding beyond the longest text takes less than a quarter of the computation.

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
    """16, 32, 64 and so on up to `longest`: the few lengths that XLA compiles for and a server warms up with."""
    return [*itertools.takewhile(lambda length: length < longest, (2**power for power in itertools.count(4))), longest]


def padded_length(lengths: Sequence[int], needed: tf.Tensor) -> tf.Tensor:
    """The first of the ascending `lengths` that is at least `needed` (int32 scalar), or else the last."""
    place = tf.searchsorted(tf.constant(lengths[:-1], tf.int32), needed[tf.newaxis])[0]
    return tf.gather(tf.constant(lengths, tf.int32), place)


def filled(strings: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """`(is_there [batch, n] bool, counts [batch] int32)` of strings `[batch, n]` padded with "" at the end."""
    number = tf.range(1, tf.shape(strings)[1] + 1)
    # The maximum over zero columns is the smallest integer.
    counts = tf.maximum(tf.reduce_max(tf.where(tf.not_equal(strings, ""), number, 0), axis=1), 0)
    return number <= counts[:, tf.newaxis], counts


class FlatRows(NamedTuple):
    """Concatenated rows of tokens, special tokens included.

    Attributes:
        ids: int32 `[tokens]`.
        lengths: int32 `[batch]`, the number of tokens of each row.
        second_starts: int32 `[batch]`, where the second segment starts in its row; the row's length if none.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    second_starts: tf.Tensor


def flat_rows(segments: Sequence[PieceSpans], vocabulary: Vocabulary) -> FlatRows:
    """Joins one or two segments per row, without padding.

    Args:
        segments: the first and, for pairs, the second texts, truncated.
    """
    lengths = _row_lengths(segments, vocabulary)
    row = tf.repeat(tf.range(tf.size(lengths)), lengths)
    positions = tf.range(tf.size(row)) - tf.gather(tf.cumsum(lengths, exclusive=True), row)
    ids = _ids(segments, vocabulary, positions, lambda column: tf.gather(column, row))
    return FlatRows(ids, lengths, segment_starts(segments, vocabulary)[1])


def padded_rows(
    segments: Sequence[PieceSpans], vocabulary: Vocabulary, lengths: Sequence[int] | None = None
) -> dict[str, tf.Tensor]:
    """The rows of `flat_rows` as the encoder's inputs, each `[batch, seq]` int32.

    Args:
        segments: as for `flat_rows`; with their special tokens they must fit into the last of `lengths`.
        lengths: see `padded_length`; None pads to the longest row.
    """
    totals = _row_lengths(segments, vocabulary)
    needed = tf.reduce_max(tf.concat([totals, [1]], axis=0))
    positions = tf.range(needed if lengths is None else padded_length(lengths, needed))[tf.newaxis]
    is_real = positions < totals[:, tf.newaxis]
    return {
        "input_word_ids": _ids(segments, vocabulary, positions, lambda column: column[:, tf.newaxis]),
        "input_mask": tf.cast(is_real, tf.int32),
        "input_type_ids": segment_ids(
            is_real, segment_starts(segments, vocabulary)[1], vocabulary.row_pattern.last_segment
        ),
    }


def _row_lengths(segments: Sequence[PieceSpans], vocabulary: Vocabulary) -> tf.Tensor:
    return vocabulary.row_pattern.special_tokens(len(segments)) + tf.add_n([spans.lengths for spans in segments])


def segment_starts(segments: Sequence[PieceSpans], vocabulary: Vocabulary) -> tuple[tf.Tensor, tf.Tensor]:
    """Where the two segments start in each row, int32 `[batch]` each; the second at the row's length if missing."""
    pattern = vocabulary.row_pattern
    after_first = pattern.end if len(segments) == 1 else pattern.between
    first = tf.fill(tf.shape(segments[0].lengths), len(pattern.start))
    return first, first + segments[0].lengths + len(after_first)


def _ids(
    segments: Sequence[PieceSpans],
    vocabulary: Vocabulary,
    positions: tf.Tensor,
    spread: Callable[[tf.Tensor], tf.Tensor],
) -> tf.Tensor:
    """The ids at positions in rows, padding after a row's end.

    Args:
        segments: see `flat_rows`.
        positions: int32, any shape.
        spread: function (`[batch]`) -> the value of each position's row, broadcastable to `positions`.
    """
    # The special tokens come before all pieces, so that one gather fetches everything.
    pattern = vocabulary.row_pattern
    special = (*pattern.start, *pattern.between, *pattern.end, vocabulary.pad_id)
    values = [tf.constant(special, tf.int32)]
    between, end, pad = len(pattern.start), len(pattern.start) + len(pattern.between), len(special) - 1
    sources = pad
    for place in range(len(pattern.start)):
        sources = tf.where(tf.equal(positions, place), place, sources)
    offset, start = len(special), len(pattern.start)
    for number, spans in enumerate(segments, start=1):
        position_spans = spans.spread(spread)
        inside = positions - start
        is_piece = (inside >= 0) & (inside < position_spans.lengths)
        sources = tf.where(is_piece, position_spans.indices(inside) + offset, sources)
        first, count = (end, len(pattern.end)) if number == len(segments) else (between, len(pattern.between))
        for place in range(count):
            sources = tf.where(tf.equal(inside, position_spans.lengths + place), first + place, sources)
        values.append(spans.values)
        offset += tf.size(spans.values)
        start += position_spans.lengths + count
    return tf.gather(tf.concat(values, axis=0), sources)
