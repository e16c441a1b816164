"""What all layers share: tensor types, a base class, initializers, dense layers, a gather and a range check."""

import contextlib
import contextvars
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

import keras
import numpy as np
from keras import ops

# A backend's tensor in eager mode or in a graph, or Keras' symbolic one while a functional model is built.
Tensor: TypeAlias = keras.KerasTensor


# A batch: tensors [batch, …] by name.
Batch: TypeAlias = Mapping[str, Tensor]
# {term: {metric: float32 scalar}}.
Sums: TypeAlias = dict[str, dict[str, Tensor]]


_T = TypeVar("_T")


@contextlib.contextmanager
def set_within(variable: contextvars.ContextVar[Any], value: _T) -> Iterator[_T]:
    """Within the block, in this thread, the variable has this value, which is also the block's."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


_replacement: contextvars.ContextVar[Callable | None] = contextvars.ContextVar("replacement", default=None)


def truncated_normal(stddev: float) -> Callable:
    """A normal distribution truncated at two standard deviations (modeling.py, `create_initializer`)."""
    return _replacement.get() or keras.initializers.TruncatedNormal(stddev=stddev)


def normal(stddev: float) -> Callable:
    """A normal distribution without truncation, as in T5."""
    return _replacement.get() or keras.initializers.RandomNormal(stddev=stddev)


def new_dense(
    units: int,
    initializer_range: float,
    policy: keras.DTypePolicy,
    name: str,
    activation: Callable[[Tensor], Tensor] | None = None,
    use_bias: bool = True,
) -> keras.layers.Dense:
    """A dense layer whose kernel begins as `truncated_normal`."""
    kernel = truncated_normal(initializer_range)
    return keras.layers.Dense(units, activation, use_bias, kernel_initializer=kernel, dtype=policy, name=name)


def new_layer_norm(epsilon: float, policy: keras.DTypePolicy, name: str) -> keras.layers.LayerNormalization:
    """A LayerNorm."""
    return keras.layers.LayerNormalization(epsilon=epsilon, dtype=policy, name=name)


def new_table(
    layer: keras.layers.Layer, name: str, rows: int, width: int, initializer: Any, trainable: bool = True
) -> keras.Variable:
    """A table of embeddings [rows, width], a weight of the layer."""
    # autocast=False: under bfloat16 only the rows that are looked up are cast, not the whole table.
    return layer.add_weight(
        name=name, shape=(rows, width), initializer=initializer, trainable=trainable, autocast=False
    )


def gather_positions(sequence: Tensor, positions: Tensor) -> Tensor:
    """Gather states [batch, seq, hidden] at positions [batch, predictions]: [batch, predictions, hidden].

    Raises:
        ValueError: in eager mode, a position is outside the row, where it would read another row's state.
    """
    batch, seq, hidden = ops.shape(sequence)
    if (wrong := first_out_of_range(positions, seq)) is not None:
        raise ValueError(f"positions: needs positions from 0 to {seq - 1}. Received: {wrong}.")
    row_starts = ops.arange(batch, dtype="int32")[:, None] * seq
    flat = ops.take(ops.reshape(sequence, (-1, hidden)), ops.reshape(positions + row_starts, (-1,)), axis=0)
    return ops.reshape(flat, (batch, ops.shape(positions)[1], hidden))


def first_out_of_range(ids: Tensor, size: int) -> int | None:
    """The first id outside 0 to `size` - 1; None if there is none, and always in a graph."""
    if not isinstance(ids, np.ndarray) and not hasattr(ids, "numpy"):
        return None
    values = ops.convert_to_numpy(ids)
    wrong = values[(values < 0) | (values >= size)]
    return int(wrong[0]) if wrong.size else None


class PlainLayer(keras.layers.Layer):
    """A layer whose config is its constructor's arguments: plain values, kept as attributes of the same names."""

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **arguments_of(self, PlainLayer)}


def arguments_of(thing: keras.layers.Layer, base: type) -> dict[str, Any]:
    """The constructor's arguments in the classes between that of `thing` and `base`, from attributes of these names."""
    found: dict[str, Any] = {}
    for cls in itertools.takewhile(lambda cls: cls is not base, type(thing).__mro__):
        if constructor := vars(cls).get("__init__"):
            _, *arguments = inspect.signature(constructor).parameters.values()
            found |= {one.name: getattr(thing, one.name) for one in arguments if one.kind is not one.VAR_KEYWORD}
    return found


def normal_replaced_by(initializer: Callable) -> contextlib.AbstractContextManager[Callable]:
    """Within the block, in this thread, build models with `initializer` instead of the normal ones."""
    return set_within(_replacement, initializer)
