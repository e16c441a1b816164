"""Which positions a position attends to, as a bias on the attention scores."""

from keras import ops

from keras_bert.layers.tensors import Tensor

PADDING_BIAS = -1e9
# -1e9 would be -inf in float16, and the softmax over a row of nothing but padding would be NaN.
FLOAT16_PADDING_BIAS = -3e4


def as_bias(is_hidden: Tensor, compute_dtype: str) -> Tensor:
    """The float32 bias for a mask that is 1 or true where a position does not attend to another, and 0 elsewhere."""
    return ops.cast(is_hidden, "float32") * (FLOAT16_PADDING_BIAS if compute_dtype == "float16" else PADDING_BIAS)


def hidden_positions(input_mask: Tensor, causal: bool) -> Tensor:
    """1 for the positions that a position does not attend to, 0 for the others: [batch, 1, 1 or seq, seq] float32."""
    padding = (1.0 - ops.cast(input_mask, "float32"))[:, None, None, :]
    if not causal:
        return padding
    places = ops.arange(ops.shape(input_mask)[1], dtype="int32")
    return ops.maximum(padding, later_places(places, places))


def later_places(places: Tensor, columns: Tensor) -> Tensor:
    """1 for the columns [m] that come after a place [n], 0 for the others: [1, 1, n, m] float32."""
    return ops.cast(columns[None, :] > places[:, None], "float32")[None, None]
