"""Cross-entropy and accuracy of class labels."""

from keras import ops

from keras_bert.layers.tensors import Tensor


def cross_entropy(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Computes `loss` (nats) and `accuracy` (0 or 1) for each label, both [...] float32.

    Args:
        logits: [..., classes].
        labels: [...] int32.
    """
    picked = ops.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return {
        "loss": ops.logsumexp(logits, axis=-1) - picked,
        "accuracy": ops.cast(ops.equal(_first_largest(logits), labels), "float32"),
    }


def _first_largest(logits: Tensor) -> Tensor:
    """Same as `ops.argmax`, [..., classes] -> [...] int32, as two plain reductions, which XLA vectorizes on a CPU."""
    classes = logits.shape[-1]
    is_largest = ops.equal(logits, ops.max(logits, axis=-1, keepdims=True))
    return ops.min(ops.where(is_largest, ops.arange(classes, dtype="int32"), classes), axis=-1)
