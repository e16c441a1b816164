"""Pieces of many texts in one flat tensor, and which of them each row takes."""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf


class PieceSpans(NamedTuple):
    """One span of pieces per row: that of row `i` is `values[starts[i] : starts[i] + lengths[i]]`.

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
        """From `[batch, (pieces)]`, the output of a tokenizer."""
        splits = tf.cast(ragged.row_splits, tf.int32)
        return cls(ragged.values, splits[:-1], splits[1:] - splits[:-1])

    def taken(self, numbers: tf.Tensor) -> "PieceSpans":
        """The spans with these indices, int32 `[rows]`."""
        return self.spread(lambda column: tf.gather(column, numbers))

    def spread(self, change: Callable[[tf.Tensor], tf.Tensor]) -> "PieceSpans":
        """The spans with every `[batch]` column changed by a function, such as to `[batch, 1]`."""
        columns = (self.starts, self.lengths, self.heads, self.gaps)
        return PieceSpans(self.values, *(None if column is None else change(column) for column in columns))

    def indices(self, positions: tf.Tensor) -> tf.Tensor:
        """The indices in `values` of the pieces at positions of their rows; the columns must broadcast to them."""
        indices = positions + self.starts
        if self.heads is None or self.gaps is None:
            return indices
        return indices + tf.where(positions >= self.heads, self.gaps, 0)
