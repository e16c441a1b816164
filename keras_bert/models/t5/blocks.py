"""T5's blocks: norms before attention and before the feed-forward network, and no biases in dense layers."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.decoder_block import KeysAndValues
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.encoder_block import activation
from keras_bert.layers.tensors import PlainLayer, Tensor, normal
from keras_bert.models.t5.kind import T5Config


def t5_dense(units: int, stddev: float, policy: Any, name: str) -> keras.layers.Dense:
    """A dense layer without biases."""
    return keras.layers.Dense(units, use_bias=False, kernel_initializer=normal(stddev), dtype=policy, name=name)


def t5_norm(config: T5Config, policy: Any, name: str) -> keras.layers.RMSNormalization:
    """A norm without mean and bias, computed in float32 (Zhang and Sennrich 2019)."""
    return keras.layers.RMSNormalization(epsilon=config.layer_norm_eps, dtype=policy, name=name)


@keras.saving.register_keras_serializable(package="keras_bert")
class T5Attention(PlainLayer):
    """Attention without scaling: the initial weights of the queries are smaller instead.

    The width of a head is a setting of its own: the heads' widths need not add up to the states' width.

    Call arguments:
        queried: [batch, queries, hidden], the states that attend.
        attended: the `keys_and_values` of the states to attend to.
        attention_bias: broadcastable to [batch, heads, queries, keys]: the bias of relative positions, and a large
            negative number for the keys that a query does not attend to.
    Returns: (output as `queried`, probabilities [batch, heads, queries, keys] before dropout).
    """

    def __init__(
        self,
        hidden_size: int,
        num_attention_heads: int,
        head_size: int,
        initializer_factor: float = 1.0,
        dropout_rate: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.num_attention_heads = num_attention_heads
        self.head_size = head_size
        self.initializer_factor = initializer_factor
        self.dropout_rate = dropout_rate
        inner, policy = num_attention_heads * head_size, self.dtype_policy
        stddev = initializer_factor * hidden_size**-0.5
        self.query = t5_dense(inner, stddev * head_size**-0.5, policy, "query")
        self.key = t5_dense(inner, stddev, policy, "key")
        self.value = t5_dense(inner, stddev, policy, "value")
        self.output_projection = t5_dense(hidden_size, initializer_factor * inner**-0.5, policy, "output_projection")
        self.dropout = Dropout(dropout_rate, dtype=policy, name="dropout")

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        for projection in (self.query, self.key, self.value):
            projection.build((None, None, self.hidden_size))
        self.output_projection.build((None, None, self.num_attention_heads * self.head_size))

    def project(self, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of states [batch, seq, hidden], each [batch, heads, seq, head_size]."""
        return self._split(self.query(states)), *self.keys_and_values(states)

    def keys_and_values(self, states: Tensor) -> KeysAndValues:
        """The keys and values of `project`."""
        return self._split(self.key(states)), self._split(self.value(states))

    def call(
        self, queried: Tensor, attended: KeysAndValues, attention_bias: Tensor, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        return self.attend(self._split(self.query(queried)), *attended, attention_bias, training)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, attention_bias: Tensor, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Compute `call` from the output of `project`."""
        scores = ops.cast(ops.matmul(query, ops.transpose(key, (0, 1, 3, 2))), "float32")
        scores += ops.cast(attention_bias, "float32")
        probabilities = ops.cast(ops.softmax(scores, axis=-1), self.compute_dtype)
        context = ops.matmul(self.dropout(probabilities, training=training), value)
        batch, _, seq, _ = ops.shape(query)
        inner = self.num_attention_heads * self.head_size
        context = ops.reshape(ops.transpose(context, (0, 2, 1, 3)), (batch, seq, inner))
        return self.output_projection(context), probabilities

    def _split(self, vectors: Tensor) -> Tensor:
        """[batch, seq, heads * head_size] -> [batch, heads, seq, head_size]."""
        batch, seq = ops.shape(vectors)[:2]
        vectors = ops.reshape(vectors, (batch, seq, self.num_attention_heads, self.head_size))
        return ops.transpose(vectors, (0, 2, 1, 3))


@keras.saving.register_keras_serializable(package="keras_bert")
class T5FeedForward(PlainLayer):
    """`output(activation(inner(states)))`; gated (Shazeer 2020), `output(activation(gate(states)) * inner(states))`."""

    def __init__(
        self,
        hidden_size: int,
        intermediate_size: int,
        hidden_act: str = "relu",
        is_gated: bool = False,
        initializer_factor: float = 1.0,
        dropout_rate: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.hidden_act = hidden_act
        self.is_gated = is_gated
        self.initializer_factor = initializer_factor
        self.dropout_rate = dropout_rate
        policy, stddev = self.dtype_policy, initializer_factor * hidden_size**-0.5
        self.activation = activation(hidden_act)
        self.gate = t5_dense(intermediate_size, stddev, policy, "gate") if is_gated else None
        self.inner = t5_dense(intermediate_size, stddev, policy, "inner")
        self.output_dense = t5_dense(hidden_size, initializer_factor * intermediate_size**-0.5, policy, "output_dense")
        self.dropout = Dropout(dropout_rate, dtype=policy, name="dropout")

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        for dense in filter(None, (self.gate, self.inner)):
            dense.build((None, None, self.hidden_size))
        self.output_dense.build((None, None, self.intermediate_size))

    def call(self, states: Tensor, training: bool = False) -> Tensor:
        inner = self.inner(states)
        inner = self.activation(inner) if self.gate is None else self.activation(self.gate(states)) * inner
        return self.output_dense(self.dropout(inner, training=training))


class T5Block(keras.layers.Layer):
    """Self-attention, then the feed-forward network. Each reads the norm of the states and is added to the states.

    Call arguments:
        hidden: [batch, seq, hidden].
        attention_bias: see `T5Attention`.
    Returns: (output [batch, seq, hidden], probabilities of self-attention [batch, heads, seq, seq]).
    """

    def __init__(self, config: T5Config, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        policy = self.dtype_policy
        self.attention_norm = t5_norm(config, policy, "attention_norm")
        self.attention = self.make_attention("attention")
        self.feed_forward_norm = t5_norm(config, policy, "feed_forward_norm")
        self.feed_forward = T5FeedForward(
            config.hidden_size,
            config.intermediate_size,
            config.hidden_act,
            config.is_gated,
            config.initializer_factor,
            config.hidden_dropout_prob,
            dtype=policy,
            name="feed_forward",
        )
        self.dropout = Dropout(config.hidden_dropout_prob, dtype=policy, name="dropout")

    def make_attention(self, name: str) -> T5Attention:
        config = self.config
        return T5Attention(
            config.hidden_size,
            config.num_attention_heads,
            config.head_size,
            config.initializer_factor,
            config.attention_probs_dropout_prob,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        for layer in self._flatten_layers(include_self=False, recursive=False):
            if not layer.built:
                layer.build((None, None, self.config.hidden_size))

    def call(self, hidden: Tensor, attention_bias: Tensor, training: bool = False) -> tuple[Tensor, Tensor]:
        normed = self.attention_input(hidden)
        keys_and_values = self.attention.keys_and_values(normed)
        attended, probabilities = self.attention(normed, keys_and_values, attention_bias, training=training)
        return self.fed_forward(self.added(hidden, attended, training), training), probabilities

    def attention_input(self, hidden: Tensor) -> Tensor:
        """The input of attention, from the block's input [..., hidden]."""
        return self.attention_norm(hidden)

    def added(self, hidden: Tensor, more: Tensor, training: bool = False) -> Tensor:
        """The states plus the output of a part of the block, after dropout."""
        return hidden + self.dropout(more, training=training)

    def fed_forward(self, hidden: Tensor, training: bool = False) -> Tensor:
        """The block's output for the states after attention."""
        return self.added(hidden, self.feed_forward(self.feed_forward_norm(hidden), training=training), training)
