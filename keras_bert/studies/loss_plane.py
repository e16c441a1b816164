"""The loss of a model in a plane through its weights (Li et al. 2018, arXiv 1712.09913)."""

from collections.abc import Callable, Sequence

import keras
import numpy as np

_DIRECTIONS = 2


class LossPlane:
    """A plane through a model's weights along two random directions, as long as the weights themselves.

    Each direction is normal noise in which every filter has the length of the model's own: the column of a kernel that
    makes one output, the row of an embedding table. Biases and LayerNorm stay (Li et al. 2018, section 4). So a step of
    1 changes the weights of any model as much as they are large.

    Args:
        model: the model, which has its own weights again after each call.
        loss: function () -> the loss with the weights as they are.
        seed: of the directions.
    """

    def __init__(self, model: keras.Model, loss: Callable[[], float], seed: int = 0):
        self._variables = model.trainable_variables
        self._loss = loss
        self._start = [np.array(variable) for variable in self._variables]
        random = np.random.default_rng(seed)
        self._directions = [
            [filter_normalized(random, variable.name, value) for variable, value in zip(self._variables, self._start)]
            for _ in range(_DIRECTIONS)
        ]

    def __call__(self, x: float, y: float) -> float:
        """The loss at so much of the first and of the second direction."""
        first, second = self._directions
        for variable, start, along, across in zip(self._variables, self._start, first, second):
            variable.assign(start + x * along + y * across)
        try:
            return float(self._loss())
        finally:
            for variable, start in zip(self._variables, self._start):
                variable.assign(start)


def filter_normalized(random: np.random.Generator, name: str, weights: np.ndarray) -> np.ndarray:
    """Noise of the shape of `weights` whose filters have the lengths of theirs; 0 for biases and LayerNorm.

    Args:
        random: where the noise comes from.
        name: the variable's name; the filters of a `kernel` or `recurrent_kernel` [inputs, outputs] are its columns,
            those of others their rows.
        weights: the variable's value.
    """
    if weights.ndim < 2 or name.endswith("bias"):  # A GRU's bias is [2, outputs].
        return np.zeros_like(weights)
    axis = 0 if name.endswith("kernel") else -1
    noise = random.standard_normal(weights.shape).astype(weights.dtype)
    lengths = np.linalg.norm(weights, axis=axis, keepdims=True)
    return noise * lengths / np.linalg.norm(noise, axis=axis, keepdims=True)


def steps(radius: float, count: int) -> Sequence[float]:
    """The places of a grid on one axis: `count` of them, an odd number, from -radius to radius."""
    return np.linspace(-radius, radius, count).round(6).tolist()
