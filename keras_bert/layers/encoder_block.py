"""One layer of the Transformer encoder, LayerNorm after each residual (paper, section 3)."""

from typing import Any

import keras

from keras_bert.layers.activations import activation
from keras_bert.layers.attention import SelfAttention
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.initializers import truncated_normal
from keras_bert.layers.tensors import Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class EncoderBlock(keras.layers.Layer):
    """Self-attention, then the feed-forward network, each with a residual connection and LayerNorm.

    Call arguments: `hidden` [batch, seq, hidden], `attention_bias` [batch, 1, 1 or seq, seq].
    Returns: (output [batch, seq, hidden], attention probabilities [batch, heads, seq, seq]).
    """

    def __init__(
        self,
        hidden_size: int,
        num_attention_heads: int,
        intermediate_size: int,
        hidden_act: str = "gelu",
        initializer_range: float = 0.02,
        layer_norm_eps: float = 1e-12,
        hidden_dropout_rate: float = 0.1,
        attention_dropout_rate: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.num_attention_heads = num_attention_heads
        self.intermediate_size = intermediate_size
        self.hidden_act = hidden_act
        self.initializer_range = initializer_range
        self.layer_norm_eps = layer_norm_eps
        self.hidden_dropout_rate = hidden_dropout_rate
        self.attention_dropout_rate = attention_dropout_rate

        policy = self.dtype_policy
        self.attention = SelfAttention(
            hidden_size,
            num_attention_heads,
            initializer_range,
            attention_dropout_rate,
            dtype=policy,
            name="attention",
        )
        self.attention_dropout = Dropout(hidden_dropout_rate, dtype=policy, name="attention_dropout")
        self.attention_layer_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_eps, dtype=policy, name="attention_layer_norm"
        )
        self.intermediate = keras.layers.Dense(
            intermediate_size,
            kernel_initializer=truncated_normal(initializer_range),
            dtype=policy,
            name="intermediate",
        )
        self.activation = activation(hidden_act)
        self.output_dense = keras.layers.Dense(
            hidden_size, kernel_initializer=truncated_normal(initializer_range), dtype=policy, name="output_dense"
        )
        self.output_dropout = Dropout(hidden_dropout_rate, dtype=policy, name="output_dropout")
        self.output_layer_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_eps, dtype=policy, name="output_layer_norm"
        )

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        shape = (None, None, self.hidden_size)
        for layer in (self.attention, self.attention_layer_norm, self.intermediate, self.output_layer_norm):
            layer.build(shape)
        self.output_dense.build((None, None, self.intermediate_size))

    def call(self, hidden: Tensor, attention_bias: Tensor, training: bool = False) -> tuple[Tensor, Tensor]:
        attended, probabilities = self.attention(hidden, attention_bias, training=training)
        hidden = self.attention_layer_norm(hidden + self.attention_dropout(attended, training=training))
        output = self.output_dense(self.activation(self.intermediate(hidden)))
        return self.output_layer_norm(hidden + self.output_dropout(output, training=training)), probabilities

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "num_attention_heads": self.num_attention_heads,
            "intermediate_size": self.intermediate_size,
            "hidden_act": self.hidden_act,
            "initializer_range": self.initializer_range,
            "layer_norm_eps": self.layer_norm_eps,
            "hidden_dropout_rate": self.hidden_dropout_rate,
            "attention_dropout_rate": self.attention_dropout_rate,
        }
