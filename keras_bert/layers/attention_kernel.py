"""Attention by a fused kernel: what a training step may put in place of self-attention's own operations."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator

from keras_bert.layers.tensors import Tensor

# Function (queries, keys and values, each [batch, heads, seq, head_size]; attention_bias) -> the values' sums
# [batch, heads, seq, head_size], weighted by the softmax of queries * keys / sqrt(head_size) + attention_bias. None
# where the kernel does not take these.
Kernel = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor | None]

_active: contextvars.ContextVar[Kernel | None] = contextvars.ContextVar("attention_kernel", default=None)


@contextlib.contextmanager
def attention_kernel(kernel: Kernel | None) -> Iterator[None]:
    """A block in which self-attention without dropout is computed by `kernel`; None for its own operations."""
    token = _active.set(kernel)
    try:
        yield
    finally:
        _active.reset(token)


def attended_by_kernel(query: Tensor, key: Tensor, value: Tensor, attention_bias: Tensor) -> Tensor | None:
    """What the kernel of the block makes of these, or None without one or where it does not take them."""
    kernel = _active.get()
    return None if kernel is None else kernel(query, key, value, attention_bias)
