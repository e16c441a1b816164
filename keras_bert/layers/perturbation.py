"""A change that a training step makes to the embeddings, before the encoder's blocks read them."""

import contextlib
import contextvars
from collections.abc import Callable

from keras_bert.layers.tensors import Tensor, set_within

# Function (embeddings [batch, seq, hidden]) -> what the blocks read instead.
Change = Callable[[Tensor], Tensor]

_active: contextvars.ContextVar[Change | None] = contextvars.ContextVar("perturbation", default=None)


def perturbation(change: Change | None) -> contextlib.AbstractContextManager[Change | None]:
    """Within the block, encoders read changed embeddings; None for the embeddings themselves."""
    return set_within(_active, change)


def perturbed(embeddings: Tensor) -> Tensor:
    """The embeddings with the active change, if there is one."""
    change = _active.get()
    return embeddings if change is None else change(embeddings)
