"""The check that a model's outputs are numbers to choose by."""

import numpy as np

from keras_bert.errors import UserError


def require_numbers(are_numbers, what="examples"):
    """Raises `UserError` unless all outputs, told by a bool array [outputs], are finite; `what` each of them is of."""
    broken = np.count_nonzero(~are_numbers)
    if broken:
        raise UserError(
            f"The model's outputs: needs finite numbers. Received: {broken} of {len(are_numbers)} {what} with others. "
            "Was it trained with too high a learning rate?"
        )
