"""One layer of the Transformer encoder, LayerNorm after each residual (paper, section 3)."""

import math
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_bert.core.settings import Positive, checked, require_multiple
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.in_training import kernel_attention
from keras_bert.layers.tensors import PlainLayer, Tensor, gather_positions, new_dense, new_layer_norm


@keras.saving.register_keras_serializable(package="keras_bert")
class SelfAttention(PlainLayer):
    """Multi-head attention of every position to all positions that `attention_bias` does not mask.

    Call arguments:
        hidden: [batch, seq, hidden].
        attention_bias: [batch, 1, 1 or seq, seq], 0 for the positions that a position attends to, a large negative
            number for the others, such as padding.
        queried: [batch, queries, hidden], the states that attend, if not all of `hidden`; then `attention_bias` is
            [batch, 1, 1 or queries, seq].
    Returns: (output [batch, seq or queries, hidden], probabilities [batch, heads, seq or queries, seq] before dropout).

    Example:
        attend = keras_bert.SelfAttention(hidden_size=16, num_attention_heads=2)
        output, attention = attend(np.ones((2, 8, 16), "float32"), np.zeros((2, 1, 1, 8), "float32"))
    """

    @checked
    def __init__(
        self,
        hidden_size: Positive[int],
        num_attention_heads: Positive[int],
        initializer_range: float = 0.02,
        dropout_rate: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.num_attention_heads = num_attention_heads
        self.initializer_range = initializer_range
        self.dropout_rate = dropout_rate
        require_multiple(self, "num_attention_heads", "hidden_size")
        self.head_size = hidden_size // num_attention_heads
        self.query, self.key, self.value, self.output_projection = (
            new_dense(hidden_size, initializer_range, self.dtype_policy, name)
            for name in ("query", "key", "value", "output_projection")
        )
        self.dropout = Dropout(dropout_rate, dtype=self.dtype_policy, name="dropout")

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        for projection in (self.query, self.key, self.value, self.output_projection):
            projection.build((None, None, self.hidden_size))

    def call(
        self, hidden: Tensor, attention_bias: Tensor, training: bool = False, queried: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        query = self.queries(hidden if queried is None else queried)
        return self.attend(query, *self.keys_and_values(hidden), attention_bias, training)

    def project(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of states [batch, seq, hidden], each [batch, heads, seq, head_size]."""
        return self.queries(hidden), *self.keys_and_values(hidden)

    def queries(self, hidden: Tensor) -> Tensor:
        """The queries of `project`."""
        return self._split_heads(self.query(hidden))

    def keys_and_values(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """The keys and values of `project`."""
        return self._split_heads(self.key(hidden)), self._split_heads(self.value(hidden))

    def _split_heads(self, vectors: Tensor) -> Tensor:
        """[batch, seq, hidden] -> [batch, heads, seq, head_size]."""
        batch, seq = ops.shape(vectors)[:2]
        vectors = ops.reshape(vectors, (batch, seq, self.num_attention_heads, self.head_size))
        return ops.transpose(vectors, (0, 2, 1, 3))

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, attention_bias: Tensor, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Compute `call` from the output of `project`; there may be more keys and values than queries."""
        batch, _, seq, _ = ops.shape(query)
        scores = ops.matmul(query * self.head_size**-0.5, ops.transpose(key, (0, 1, 3, 2)))
        # In float32 even under bfloat16, whose 8 bits of precision are too few to sum 512 probabilities.
        scores = ops.cast(scores, "float32") + ops.cast(attention_bias, "float32")
        probabilities = ops.cast(ops.softmax(scores, axis=-1), self.compute_dtype)
        context = None
        if training and self.dropout.rate == 0:
            context = kernel_attention(query, key, value, attention_bias)
        if context is None:
            context = ops.matmul(self.dropout(probabilities, training=training), value)
        context = ops.reshape(ops.transpose(context, (0, 2, 1, 3)), (batch, seq, self.hidden_size))
        return self.output_projection(context), probabilities


def _in_float32(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """`function`, computed in float32 even for half-precision values and rounded once, at the end."""

    def rounded(x: Tensor) -> Tensor:
        if keras.backend.standardize_dtype(x.dtype) not in ("float16", "bfloat16"):
            return function(x)
        return ops.cast(function(ops.cast(x, "float32")), x.dtype)

    return rounded


# TensorFlow's own gelu takes twice as long (three times in bfloat16 on CPUs): it uses erfc, for the sake of very small
# values, or a power. In half precision 1 + erf(x) would lose those values. LiteRT fuses each of these two into one op,
# but only with their products in this order.
@_in_float32
def _gelu(x: Tensor) -> Tensor:
    return (0.5 * x) * (1.0 + ops.erf(x / 2.0**0.5))


@_in_float32
def _tanh_gelu(x: Tensor) -> Tensor:
    return (0.5 * x) * (1.0 + ops.tanh((2.0 / math.pi) ** 0.5 * (x + 0.044715 * (x * x * x))))


# transformers has several names for some functions, which differ only in how it computes them.
_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    **dict.fromkeys(("gelu", "gelu_python"), _gelu),
    "gelu_10": lambda x: ops.clip(_gelu(x), -10.0, 10.0),
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_fast", "gelu_accurate"), _tanh_gelu),
    "quick_gelu": lambda x: x * ops.sigmoid(1.702 * x),
    "relu": ops.relu,
    "relu2": lambda x: ops.square(ops.relu(x)),
    "relu6": ops.relu6,
    "leaky_relu": lambda x: ops.leaky_relu(x, negative_slope=0.01),  # PyTorch's slope; Keras' is 0.2.
    **dict.fromkeys(("silu", "swish"), ops.silu),
    "mish": lambda x: x * ops.tanh(ops.softplus(x)),
    "hardswish": ops.hard_silu,
    "sigmoid": ops.sigmoid,
    "tanh": ops.tanh,
    "linear": lambda x: x,
}


def activation(name: str) -> Callable[[Tensor], Tensor]:
    """The function for a config's `hidden_act`. BERT's own is `gelu` in the exact form, with erf."""
    if name not in _FUNCTIONS:
        raise ValueError(f"hidden_act: needs one of {', '.join(_FUNCTIONS)}. Received: {name!r}.")
    return _FUNCTIONS[name]


@keras.saving.register_keras_serializable(package="keras_bert")
class EncoderBlock(keras.layers.Layer):
    """Self-attention, then the feed-forward network, each with a residual connection and LayerNorm.

    `attention_of` and `ffn_of` are blocks to share layers with (ALBERT): the attention and its LayerNorm come from the
    first, the feed-forward network and its LayerNorm from the second. `attention` replaces self-attention: a layer with
    the same interface, whose `attention_bias` may be whatever it needs. `inner_dropout_rate` adds dropout within the
    feed-forward network, which BERT does not have.

    Call arguments:
        hidden: [batch, seq, hidden].
        attention_bias: [batch, 1, 1 or seq, seq].
        positions: [batch, positions] int32, the only positions to compute the output of; None for all.
    Returns: (output [batch, seq or positions, hidden], attention probabilities [batch, heads, seq or positions, seq]).

    Example:
        block = keras_bert.EncoderBlock(hidden_size=16, num_attention_heads=2, intermediate_size=64)
        output, attention = block(np.ones((2, 8, 16), "float32"), np.zeros((2, 1, 1, 8), "float32"))
        output.shape, attention.shape      # [2, 8, 16], [2, 2, 8, 8]
    """

    @checked
    def __init__(
        self,
        hidden_size: Positive[int],
        num_attention_heads: Positive[int],
        intermediate_size: Positive[int],
        hidden_act: str = "gelu",
        initializer_range: float = 0.02,
        layer_norm_eps: float = 1e-12,
        hidden_dropout_rate: float = 0.1,
        attention_dropout_rate: float = 0.1,
        attention_of: "EncoderBlock | None" = None,
        ffn_of: "EncoderBlock | None" = None,
        attention: Any = None,
        inner_dropout_rate: float | None = None,
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
        self.inner_dropout_rate = inner_dropout_rate
        self._was_given_layers = any((attention_of, ffn_of, attention))

        policy = self.dtype_policy
        # Keep this order: each layer draws the seed of its random numbers when it is made.
        self.attention: SelfAttention
        self.attention_layer_norm: keras.layers.LayerNormalization
        self.intermediate: keras.layers.Dense
        self.output_dense: keras.layers.Dense
        self.output_layer_norm: keras.layers.LayerNormalization
        if attention_of:
            self.attention = attention_of.attention
        elif attention:
            self.attention = attention
        else:
            sizes = hidden_size, num_attention_heads, initializer_range, attention_dropout_rate
            self.attention = SelfAttention(*sizes, dtype=policy, name="attention")
        self.attention_dropout = Dropout(hidden_dropout_rate, dtype=policy, name="attention_dropout")
        self.attention_layer_norm = (
            attention_of.attention_layer_norm if attention_of else self._layer_norm("attention_layer_norm")
        )
        self.intermediate = ffn_of.intermediate if ffn_of else self._dense(intermediate_size, "intermediate")
        self.activation = activation(hidden_act)
        self.output_dense = ffn_of.output_dense if ffn_of else self._dense(hidden_size, "output_dense")
        self.output_dropout = Dropout(hidden_dropout_rate, dtype=policy, name="output_dropout")
        self.output_layer_norm = ffn_of.output_layer_norm if ffn_of else self._layer_norm("output_layer_norm")
        self.inner_dropout = None
        if inner_dropout_rate is not None:
            self.inner_dropout = Dropout(inner_dropout_rate, dtype=policy, name="inner_dropout")

    def _dense(self, units: int, name: str) -> keras.layers.Dense:
        return new_dense(units, self.initializer_range, self.dtype_policy, name)

    def _layer_norm(self, name: str) -> keras.layers.LayerNormalization:
        return new_layer_norm(self.layer_norm_eps, self.dtype_policy, name)

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        shape = (None, None, self.hidden_size)
        for layer in (self.attention, self.attention_layer_norm, self.intermediate, self.output_layer_norm):
            if not layer.built:  # Another block may share it.
                layer.build(shape)
        if not self.output_dense.built:
            self.output_dense.build((None, None, self.intermediate_size))

    def call(
        self, hidden: Tensor, attention_bias: Tensor, training: bool = False, positions: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        seen, options = self.attention_input(hidden), {}
        if positions is not None:
            hidden, options = gather_positions(hidden, positions), {"queried": gather_positions(seen, positions)}
            if attention_bias.shape[2] != 1:
                attention_bias = gather_positions(attention_bias[:, 0], positions)[:, None]
        attended, probabilities = self.attention(seen, attention_bias, training=training, **options)
        return self.after_attention(hidden, attended, training), probabilities

    def attention_input(self, hidden: Tensor) -> Tensor:
        """The input of attention, from the block's input [..., hidden]."""
        return hidden

    def after_attention(self, hidden: Tensor, attended: Tensor, training: bool = False) -> Tensor:
        """The block's output [..., hidden], from its input and the output of attention."""
        return self.fed_forward(self.with_attended(hidden, attended, training), training)

    def with_attended(self, hidden: Tensor, attended: Tensor, training: bool = False) -> Tensor:
        """The input of the feed-forward network [..., hidden], from the block's input and the output of attention."""
        return self.attention_layer_norm(hidden + self.attention_dropout(attended, training=training))

    def fed_forward(self, hidden: Tensor, training: bool = False) -> Tensor:
        """Apply the feed-forward network to states [..., hidden], with its residual connection and LayerNorm."""
        output = self.output_dense(self.inner(hidden, training))
        return self.output_layer_norm(hidden + self.output_dropout(output, training=training))

    def inner(self, hidden: Tensor, training: bool = False) -> Tensor:
        """The inner activations [..., intermediate] of the feed-forward network for states [..., hidden]."""
        inner = self.activation(self.intermediate(hidden))
        return inner if self.inner_dropout is None else self.inner_dropout(inner, training=training)

    def get_config(self) -> dict[str, Any]:
        if self._was_given_layers:
            raise NotImplementedError(
                f"{type(self).__name__}: needs layers of its own for a config. Received: one made with attention_of, "
                "ffn_of or attention. Save the model that it is a part of."
            )
        sizes = ("hidden_size", "num_attention_heads", "intermediate_size")
        rates = ("hidden_dropout_rate", "attention_dropout_rate", "inner_dropout_rate")
        names = (*sizes, "hidden_act", "initializer_range", "layer_norm_eps", *rates)
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
