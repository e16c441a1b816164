"""What a training step may change in the layers that it runs: the attention's kernel, and the embeddings."""

import contextlib
import contextvars
from collections.abc import Callable

from keras_bert.layers.tensors import Tensor, set_within

# Function (queries, keys and values, each [batch, heads, seq, head_size]; attention_bias) -> the sums of the values
# [batch, heads, seq, head_size], weighted by the softmax of queries * keys / sqrt(head_size) + attention_bias; None for
# inputs that the kernel does not support.
Kernel = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor | None]
# Function (embeddings [batch, seq, hidden]) -> what the encoder's blocks read instead.
Change = Callable[[Tensor], Tensor]

_kernel: contextvars.ContextVar[Kernel | None] = contextvars.ContextVar("attention_kernel", default=None)
_change: contextvars.ContextVar[Change | None] = contextvars.ContextVar("perturbation", default=None)


def attention_kernel(kernel: Kernel | None) -> contextlib.AbstractContextManager[Kernel | None]:
    """Within the block, training uses `kernel` for self-attention without dropout; None for its own operations."""
    return set_within(_kernel, kernel)


def kernel_attention(query: Tensor, key: Tensor, value: Tensor, attention_bias: Tensor) -> Tensor | None:
    """The output of the active kernel, or None if there is none or it does not support the inputs."""
    kernel = _kernel.get()
    return None if kernel is None else kernel(query, key, value, attention_bias)


def perturbation(change: Change | None) -> contextlib.AbstractContextManager[Change | None]:
    """Within the block, encoders read changed embeddings; None for the embeddings themselves."""
    return set_within(_change, change)


def perturbed(embeddings: Tensor) -> Tensor:
    """The embeddings with the active change, if there is one."""
    change = _change.get()
    return embeddings if change is None else change(embeddings)
