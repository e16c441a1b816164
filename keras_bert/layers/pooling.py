"""Pooling of the states of a text's tokens into one vector."""

from keras import ops

from keras_bert.layers.tensors import Tensor


def mean_of_tokens(states: Tensor, input_mask: Tensor) -> Tensor:
    """The mean [batch, width] of states [batch, seq, width] over the tokens of each row, in float32."""
    mask = ops.expand_dims(ops.cast(input_mask, "float32"), -1)  # LiteRT lowers `mask[..., None]` for one row only.
    return ops.sum(ops.cast(states, "float32") * mask, axis=1) / ops.maximum(ops.sum(mask, axis=1), 1.0)


def max_of_tokens(states: Tensor, input_mask: Tensor) -> Tensor:
    """The maximum [batch, width] of states [batch, seq, width] over the tokens of each row, in float32."""
    states = ops.cast(states, "float32")
    return ops.max(ops.where(ops.expand_dims(ops.cast(input_mask, "bool"), -1), states, -1e9), axis=1)


def at_length_one(vectors: Tensor) -> Tensor:
    """Vectors [..., width] scaled to length 1; zero vectors stay zero."""
    return vectors / ops.maximum(ops.sqrt(ops.sum(ops.square(vectors), axis=-1, keepdims=True)), 1e-9)


def mean_vectors(states: Tensor, input_mask: Tensor) -> Tensor:
    """The `mean_of_tokens` scaled to length 1, float32 [batch, width]."""
    return at_length_one(mean_of_tokens(states, input_mask))
