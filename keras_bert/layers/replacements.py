"""Replaced tokens: what a discriminator reads in place of the predicted ones, and which of its tokens differ.

Shapes: `positions`, `originals` and `replacements` are int32 [batch, predictions], `weights` float32, 0 for entries
that are not used and the same in their order as `DynamicMasking` makes them. `draws` are float32 from [0, 1), one for
each prediction, made with the batch, so that what is drawn does not depend on how a batch is divided.
"""

from keras import ops

from keras_bert.layers.tensors import Tensor


def sampled(logits: Tensor, draws: Tensor) -> Tensor:
    """A class of each distribution: the first whose cumulative probability is above the draw, int32 [...].

    Args:
        logits: float32 [..., classes].
        draws: float32 [...].
    """
    cumulative = ops.cumsum(ops.softmax(logits, axis=-1), axis=-1)
    # Of the sum as it is rounded, which is not always 1.
    below = ops.cast(cumulative <= draws[..., None] * cumulative[..., -1:], "int32")
    return ops.minimum(ops.sum(below, axis=-1), logits.shape[-1] - 1)


def shuffled(originals: Tensor, weights: Tensor, draws: Tensor) -> Tensor:
    """The predicted tokens of each row in the order of their draws, int32 [batch, predictions]."""
    order = ops.argsort(ops.where(weights > 0, draws, 2.0), axis=-1)  # Unused entries stay behind the others.
    return ops.take_along_axis(originals, ops.cast(order, "int32"), axis=-1)


def with_replacements(
    word_ids: Tensor, positions: Tensor, weights: Tensor, originals: Tensor, replacements: Tensor
) -> tuple[Tensor, Tensor]:
    """The rows [batch, seq] int32 with the replacements at their positions, and where these differ from the originals:
    0 or 1, [batch, seq] int32.
    """
    places = ops.arange(ops.shape(word_ids)[1], dtype="int32")
    is_there = ops.logical_and(ops.equal(positions[:, :, None], places), (weights > 0)[:, :, None])
    put = ops.sum(ops.where(is_there, replacements[:, :, None], 0), axis=1)
    replaced_ids = ops.where(ops.any(is_there, axis=1), put, word_ids)
    differs = ops.not_equal(replacements, originals)[:, :, None]
    return replaced_ids, ops.cast(ops.any(ops.logical_and(is_there, differs), axis=1), "int32")
