"""The output layer of a task: one logit per label (run_classifier.py and run_squad.py, `create_model`)."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.dropout import Dropout
from keras_bert.layers.initializers import truncated_normal
from keras_bert.layers.tensors import Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class ClassificationHead(keras.layers.Layer):
    """Dropout, then dense: [..., hidden] -> [..., labels] float32 logits, for a sequence or for each token."""

    def __init__(
        self,
        num_labels: int,
        hidden_size: int,
        dropout_prob: float = 0.1,
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_labels = num_labels
        self.hidden_size = hidden_size
        self.dropout_prob = dropout_prob
        self.initializer_range = initializer_range
        self.dropout = Dropout(dropout_prob, dtype=self.dtype_policy, name="dropout")
        self.dense = keras.layers.Dense(
            num_labels, kernel_initializer=truncated_normal(initializer_range), dtype=self.dtype_policy, name="dense"
        )

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.dense.build((None, self.hidden_size))

    def call(self, states: Tensor, training: bool = False) -> Tensor:
        return ops.cast(self.dense(self.dropout(states, training=training)), "float32")

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_labels": self.num_labels,
            "hidden_size": self.hidden_size,
            "dropout_prob": self.dropout_prob,
            "initializer_range": self.initializer_range,
        }
