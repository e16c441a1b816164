"""Fused attention kernels, which a training step may use instead of self-attention's own operations."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator

from keras_bert.layers.tensors import Tensor

# Function (queries, keys and values, each [batch, heads, seq, head_size]; attention_bias) -> the sums of the values
# [batch, heads, seq, head_size], weighted by the softmax of queries * keys / sqrt(head_size) + attention_bias; None for
# inputs that the kernel does not support.
Kernel = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor | None]

_active: contextvars.ContextVar[Kernel | None] = contextvars.ContextVar("attention_kernel", default=None)


@contextlib.contextmanager
def attention_kernel(kernel: Kernel | None) -> Iterator[None]:
    """Within the block, training uses `kernel` for self-attention without dropout; None for its own operations."""
    token = _active.set(kernel)
    try:
        yield
    finally:
        _active.reset(token)


def kernel_attention(query: Tensor, key: Tensor, value: Tensor, attention_bias: Tensor) -> Tensor | None:
    """The output of the active kernel, or None if there is none or it does not support the inputs."""
    kernel = _active.get()
    return None if kernel is None else kernel(query, key, value, attention_bias)
