"""The loss and accuracy of fine-tuning a `BertForTokenClassification`."""

from keras import ops

from keras_bert.models.cross_entropy import cross_entropy
from keras_bert.models.tensors import Batch, Sums, Tensor


class TaggingObjective:
    """Sums over a batch, and the counts to divide them by; see `PretrainingObjective`.

    The loss is the cross-entropy at the first piece of each word (paper, section 5.3), averaged over words, not over
    sentences. A batch has `labels` [batch, seq] int32, -1 at tokens without a label, and `example_weights` [batch]
    float32.

    Attributes:
        terms: the names of the loss terms.
    """

    terms: tuple[str, ...] = ("loss",)

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Float32 scalars: the labelled words in the batch, for the loss and for the accuracy."""
        words = ops.sum(_weights(batch))
        return {"loss": words, "accuracy": words}

    def sums(self, outputs: Batch, batch: Batch) -> Sums:
        """`{"loss": {"loss": scalar}, "accuracy": {"accuracy": scalar}}` of the model's outputs."""
        metrics = cross_entropy(outputs["logits"], ops.maximum(batch["labels"], 0))
        weights = _weights(batch)
        return {name: {name: ops.sum(metrics[name] * weights)} for name in ("loss", "accuracy")}


def _weights(batch: Batch) -> Tensor:
    """[batch, seq] float32: the weight of each labelled token, 0 at the others."""
    return ops.cast(batch["labels"] >= 0, "float32") * batch["example_weights"][:, None]
