"""The next sentence prediction head (paper, section 3.1, task 2)."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.initializers import truncated_normal
from keras_bert.layers.tensors import Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class NextSentenceHead(keras.layers.Layer):
    """Pooled output [batch, hidden] -> logits [batch, 2] float32; class 0: "B follows A", 1: "B is random"."""

    def __init__(self, hidden_size: int, initializer_range: float = 0.02, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.initializer_range = initializer_range
        self.classifier = keras.layers.Dense(
            2, kernel_initializer=truncated_normal(initializer_range), dtype=self.dtype_policy, name="classifier"
        )

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.classifier.build((None, self.hidden_size))

    def call(self, pooled_output: Tensor) -> Tensor:
        return ops.cast(self.classifier(pooled_output), "float32")

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "initializer_range": self.initializer_range,
        }
