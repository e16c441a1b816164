"""Multi-head self-attention (Vaswani et al. 2017, section 3.2, as in the original modeling.py)."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.dropout import Dropout
from keras_bert.layers.initializers import truncated_normal
from keras_bert.layers.tensors import Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class SelfAttention(keras.layers.Layer):
    """Every position attends to every position that `attention_bias` leaves open.

    Call arguments:
        hidden: [batch, seq, hidden].
        attention_bias: [batch, 1, 1 or seq, seq], 0 for the positions that a position attends to, a large negative
            number for the others, such as padding.
    Returns: (output [batch, seq, hidden], probabilities [batch, heads, seq, seq] before dropout).
    """

    def __init__(
        self,
        hidden_size: int,
        num_attention_heads: int,
        initializer_range: float = 0.02,
        dropout_rate: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.num_attention_heads = num_attention_heads
        self.initializer_range = initializer_range
        self.dropout_rate = dropout_rate
        self.head_size = hidden_size // num_attention_heads
        self.query = self._projection("query")
        self.key = self._projection("key")
        self.value = self._projection("value")
        self.output_projection = self._projection("output_projection")
        self.dropout = Dropout(dropout_rate, dtype=self.dtype_policy, name="dropout")

    def _projection(self, name: str) -> keras.layers.Dense:
        return keras.layers.Dense(
            self.hidden_size,
            kernel_initializer=truncated_normal(self.initializer_range),
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        for projection in (self.query, self.key, self.value, self.output_projection):
            projection.build((None, None, self.hidden_size))

    def call(self, hidden: Tensor, attention_bias: Tensor, training: bool = False) -> tuple[Tensor, Tensor]:
        return self.attend(*self.project(hidden), attention_bias, training)

    def project(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of states [batch, seq, hidden], each [batch, heads, seq, head_size]."""
        batch, seq = ops.shape(hidden)[:2]

        def split_heads(vectors: Tensor) -> Tensor:  # [batch, seq, hidden] -> [batch, heads, seq, head_size]
            vectors = ops.reshape(vectors, (batch, seq, self.num_attention_heads, self.head_size))
            return ops.transpose(vectors, (0, 2, 1, 3))

        query, key, value = (split_heads(part(hidden)) for part in (self.query, self.key, self.value))
        return query, key, value

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, attention_bias: Tensor, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        """What `call` returns for what `project` returned; there may be more keys and values than queries."""
        batch, _, seq, _ = ops.shape(query)
        scores = ops.matmul(query * self.head_size**-0.5, ops.transpose(key, (0, 1, 3, 2)))
        # In float32 even under bfloat16, whose 8 bits of precision are too few to sum 512 probabilities.
        scores = ops.cast(scores, "float32") + ops.cast(attention_bias, "float32")
        probabilities = ops.cast(ops.softmax(scores, axis=-1), self.compute_dtype)
        context = ops.matmul(self.dropout(probabilities, training=training), value)
        context = ops.reshape(ops.transpose(context, (0, 2, 1, 3)), (batch, seq, self.hidden_size))
        return self.output_projection(context), probabilities

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "num_attention_heads": self.num_attention_heads,
            "initializer_range": self.initializer_range,
            "dropout_rate": self.dropout_rate,
        }
