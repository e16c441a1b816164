"""The check that a model's outputs are numbers to choose by."""

import numpy as np

from keras_bert.errors import UserError


def require_numbers(outputs, what="examples"):
    """Raises `UserError` unless all outputs, an array for each of `what`, are finite."""
    broken = sum(not np.isfinite(output).all() for output in outputs)
    if broken:
        raise UserError(
            f"The model's outputs: needs finite numbers. Received: {broken} of {len(outputs)} {what} with others. "
            "Was it trained with too high a learning rate?"
        )
