"""What fine-tuning a `BertForTokenClassification` minimises and measures."""

from keras import ops

from keras_bert.models.cross_entropy import cross_entropy


class TaggingObjective:
    """Sums over a batch, and the counts they are to be divided by; see `PretrainingObjective`.

    The loss is the cross-entropy at the first piece of each word, and its mean is over words, however many a sentence
    has (paper, section 5.3). A batch has `labels` [batch, seq] int32, -1 at every token that bears none, and
    `example_weights` [batch] float32.

    Attributes:
        terms: names of the terms of the loss.
    """

    terms = ("loss",)

    def counts(self, batch):
        """Scalars float32: the labelled words in the batch, for the loss and for the accuracy."""
        words = ops.sum(_weights(batch))
        return {"loss": words, "accuracy": words}

    def sums(self, outputs, batch):
        """`{"loss": {"loss": scalar}, "accuracy": {"accuracy": scalar}}` from the model's outputs."""
        metrics = cross_entropy(outputs["logits"], ops.maximum(batch["labels"], 0))
        weights = _weights(batch)
        return {name: {name: ops.sum(metrics[name] * weights)} for name in ("loss", "accuracy")}


def _weights(batch):
    """[batch, seq] float32."""
    return ops.cast(batch["labels"] >= 0, "float32") * batch["example_weights"][:, None]
