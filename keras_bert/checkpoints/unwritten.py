"""Uninitialized weights, for a model that is about to be loaded from a file."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf


def unwritten(shape: Sequence[int], dtype: str | None = None) -> "tf.Tensor":
    """A Keras initializer that allocates memory without writing to it.

    Drawing the initial values of BERT-base takes seconds, and pages that are never touched take no memory.
    """
    import tensorflow as tf

    return tf.raw_ops.Empty(shape=shape, dtype=dtype or "float32", init=False)
