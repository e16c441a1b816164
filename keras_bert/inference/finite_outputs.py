"""The check that a model's outputs are finite."""

from collections.abc import Sequence

import numpy as np

from keras_bert.core.errors import UserError


def require_numbers(outputs: Sequence[np.ndarray] | np.ndarray, what: str = "examples") -> None:
    """Raises `UserError` unless all outputs are finite.

    Args:
        outputs: an array for each example.
        what: what the message calls the examples.
    """
    broken = sum(not np.isfinite(output).all() for output in outputs)
    if broken:
        raise UserError(
            f"The model's outputs: needs finite numbers. Received: {broken} of {len(outputs)} {what} with others. "
            "Was it trained with too high a learning rate?"
        )
