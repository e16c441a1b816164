"""The sequence as one vector: C, the final state of [CLS] (paper, section 3)."""

from typing import Any

import keras

from keras_bert.layers.initializers import truncated_normal
from keras_bert.layers.tensors import Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class Pooler(keras.layers.Layer):
    """Dense and tanh over the first of some states: [batch, seq, hidden] -> [batch, hidden]."""

    def __init__(self, hidden_size: int, initializer_range: float = 0.02, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.initializer_range = initializer_range
        self.dense = keras.layers.Dense(
            hidden_size,
            activation="tanh",
            kernel_initializer=truncated_normal(initializer_range),
            dtype=self.dtype_policy,
            name="dense",
        )

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.dense.build((None, self.hidden_size))

    def call(self, sequence_output: Tensor) -> Tensor:
        return self.dense(sequence_output[:, 0])

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "initializer_range": self.initializer_range,
        }
