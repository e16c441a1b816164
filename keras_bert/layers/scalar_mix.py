"""A learned weighted sum of layers."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.tensors import Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class ScalarMix(keras.layers.Layer):
    """gamma times the softmax-weighted sum of the layers (Peters et al. 2018, ELMo, equation 1).

    Initially the plain mean. Call argument: states [..., layers, hidden]. Returns: [..., hidden].
    """

    def __init__(self, num_layers: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_layers = num_layers

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        self.layer_weights = self.add_weight(name="layer_weights", shape=(self.num_layers,), initializer="zeros")
        self.gamma = self.add_weight(name="gamma", shape=(1,), initializer="ones")

    def call(self, states: Tensor) -> Tensor:
        weights = ops.softmax(self.layer_weights) * self.gamma
        return ops.sum(states * ops.cast(weights, states.dtype)[:, None], axis=-2)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_layers": self.num_layers}
