"""Dropout whose random bits, inside a training step, depend only on a key and the element's place in the global batch.

A training step opens `dropout_key` around the forward pass, with a key made of the seed and the step. Every `Dropout`
called inside draws from that key, the number of the call, and the index that the element would have if the global batch
were computed at once. So a repeated step draws the same masks, however the batch is divided among replicas and slices.
Outside such a scope (a user's own `fit`) each layer uses a Keras seed generator.
"""

import contextlib
import contextvars
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert.layers.tensors import PlainLayer, Tensor, set_within

# Function (key; number of the dropout call in the block, from 0; shape, batch first; number of the part) -> uint16 or
# uint32 tensor of that shape, uniform over all values. Consecutive parts give what one call for all of them would.
Bits = Callable[[Tensor, int, Sequence[int | Tensor], int | Tensor], Tensor]


class _KeyScope:
    def __init__(self, key: Tensor, bits: Bits, part: int | Tensor) -> None:
        self.key = key
        self.bits = bits
        self.part = part
        self.calls = 0


_active: contextvars.ContextVar[_KeyScope | None] = contextvars.ContextVar("dropout_key", default=None)


def dropout_key(
    key: Tensor, bits: Bits | None = None, part: int | Tensor = 0
) -> contextlib.AbstractContextManager[_KeyScope]:
    """Make every `Dropout` called in the block draw its mask from `key`.

    Args:
        key: [2] uint32 tensor, different for every step.
        bits: draws the random bits. Default: `counter_bits`.
        part: which of the equal parts of the global batch the block computes, from 0: an int or an int32 scalar.
    """
    return set_within(_active, _KeyScope(key, bits or counter_bits, part))


def recomputed(function: Callable) -> Callable:
    """`function` of tensors, recomputed in the backward pass instead of keeping its intermediate results.

    It is `keras.remat` with the same dropout masks both times. Outside a `dropout_key`, masks cannot be drawn again and
    `function` is returned as it is.
    """
    scope = _active.get()
    if scope is None:
        return function
    first_call = scope.calls

    def with_the_same_masks(*inputs: Tensor) -> Any:
        with dropout_key(scope.key, scope.bits, scope.part) as repeated:
            repeated.calls = first_call
            outputs = function(*inputs)
            scope.calls = repeated.calls  # The call after this one continues from here.
        return outputs

    return keras.remat(with_the_same_masks)


def drawn_bits(shape: Sequence[int | Tensor], of_batch: bool = True) -> Tensor | None:
    """The next random bits of the active `dropout_key`; None outside one.

    Unless the first dimension is the batch (`of_batch`), all parts of a batch get the same bits.
    """
    scope = _active.get()
    if scope is None:
        return None
    call, scope.calls = scope.calls, scope.calls + 1
    return scope.bits(scope.key, call, shape, scope.part if of_batch else 0)


def counter_bits(key: Tensor, call: int, shape: Sequence[int | Tensor], part: int | Tensor = 0) -> Tensor:
    """Random bits as a hash of each element's index: a few integer operations that XLA fuses.

    The mixing constants are "lowbias32" of Chris Wellons' hash prospector. The second half of the key enters between
    its two rounds, so that the sequences of two keys are not permutations of each other. The index counts elements of
    the global batch and wraps after 2^32: examples that far apart share a mask.
    """
    first = key[0] ^ _uint32((call * 0x9E3779B9) & 0xFFFFFFFF)
    size = int(np.prod(shape)) if is_static(shape) else ops.prod(ops.stack(shape))
    index = ops.cast(ops.arange(size, dtype="int32"), "uint32")
    if not (isinstance(part, int) and part == 0):
        index = index + ops.cast(part, "uint32") * ops.cast(size, "uint32")
    state = ops.reshape(index, shape) ^ first
    state = (state ^ ops.right_shift(state, _uint32(16))) * _uint32(0x7FEB352D)
    state = state ^ key[1]
    state = (state ^ ops.right_shift(state, _uint32(15))) * _uint32(0x846CA68B)
    return state ^ ops.right_shift(state, _uint32(16))


def _keep_threshold(rate: float, dtype: str) -> Tensor:
    """The smallest value of an unsigned type at which dropout keeps the element."""
    return ops.cast(np.asarray(int(round(rate * 2.0 ** (8 * np.dtype(dtype).itemsize))), dtype), dtype)


def _uint32(value: int) -> Tensor:
    return ops.cast(np.uint32(value), "uint32")


def is_static(shape: Sequence[int | Tensor]) -> bool:
    """Whether all sizes of a shape are known."""
    return all(isinstance(size, int) for size in shape)


@keras.saving.register_keras_serializable(package="keras_bert")
class Dropout(PlainLayer):
    """In training, sets inputs to zero with probability `rate` and scales the others by 1 / (1 - rate).

    Call it with `of_batch=False` on inputs that all rows of a batch share.
    """

    def __init__(self, rate: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate
        self.seed_generator = keras.random.SeedGenerator()
        self.supports_masking = True
        self.built = True

    def call(self, inputs: Tensor, training: bool = False, of_batch: bool = True) -> Tensor:
        if not training or self.rate == 0:
            return inputs
        bits = drawn_bits(ops.shape(inputs), of_batch)
        if bits is None:
            return keras.random.dropout(inputs, self.rate, seed=self.seed_generator)
        keep = bits >= _keep_threshold(self.rate, keras.backend.standardize_dtype(bits.dtype))
        return ops.where(keep, inputs * (1.0 / (1.0 - self.rate)), ops.zeros((), inputs.dtype))

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return input_shape
