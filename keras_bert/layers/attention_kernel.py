"""Fused attention kernels, which a training step may use instead of self-attention's own operations."""

import contextlib
import contextvars
from collections.abc import Callable

from keras_bert.layers.tensors import Tensor, set_within

# Function (queries, keys and values, each [batch, heads, seq, head_size]; attention_bias) -> the sums of the values
# [batch, heads, seq, head_size], weighted by the softmax of queries * keys / sqrt(head_size) + attention_bias; None for
# inputs that the kernel does not support.
Kernel = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor | None]

_active: contextvars.ContextVar[Kernel | None] = contextvars.ContextVar("attention_kernel", default=None)


def attention_kernel(kernel: Kernel | None) -> contextlib.AbstractContextManager[Kernel | None]:
    """Within the block, training uses `kernel` for self-attention without dropout; None for its own operations."""
    return set_within(_active, kernel)


def kernel_attention(query: Tensor, key: Tensor, value: Tensor, attention_bias: Tensor) -> Tensor | None:
    """The output of the active kernel, or None if there is none or it does not support the inputs."""
    kernel = _active.get()
    return None if kernel is None else kernel(query, key, value, attention_bias)
