"""A change that a training step makes to the embeddings, before the encoder's blocks read them."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator

from keras_bert.layers.tensors import Tensor

# Function (embeddings [batch, seq, hidden]) -> what the blocks read instead.
Change = Callable[[Tensor], Tensor]

_active: contextvars.ContextVar[Change | None] = contextvars.ContextVar("perturbation", default=None)


@contextlib.contextmanager
def perturbation(change: Change | None) -> Iterator[None]:
    """Within the block, encoders read changed embeddings; None for the embeddings themselves."""
    token = _active.set(change)
    try:
        yield
    finally:
        _active.reset(token)


def perturbed(embeddings: Tensor) -> Tensor:
    """The embeddings with the active change, if there is one."""
    change = _active.get()
    return embeddings if change is None else change(embeddings)
