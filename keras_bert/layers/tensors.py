"""What all layers share: the type of what they take and return, and the initializer of BERT's weights."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import keras

# A backend's tensor in eager mode or in a graph, or Keras' symbolic one while a functional model is built.
Tensor: TypeAlias = keras.KerasTensor


# A batch: tensors [batch, …] by name.
Batch: TypeAlias = Mapping[str, Tensor]
# {term: {metric: float32 scalar}}.
Sums: TypeAlias = dict[str, dict[str, Tensor]]


_replacement: contextvars.ContextVar[Callable | None] = contextvars.ContextVar("replacement", default=None)


def truncated_normal(stddev: float) -> Callable:
    """A normal distribution truncated at two standard deviations (modeling.py, `create_initializer`)."""
    return _replacement.get() or keras.initializers.TruncatedNormal(stddev=stddev)


@contextlib.contextmanager
def normal_replaced_by(initializer: Callable) -> Iterator[None]:
    """In the block, and in this thread, models are built with `initializer` in place of `truncated_normal`."""
    token = _replacement.set(initializer)
    try:
        yield
    finally:
        _replacement.reset(token)
