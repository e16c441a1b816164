"""What fine-tuning a `BertForSequenceClassification` minimises and measures."""

import numpy as np
from keras import ops

from keras_bert.config.heads import MULTI_LABEL, PROBLEM_TYPES, REGRESSION, SINGLE_LABEL
from keras_bert.models.cross_entropy import cross_entropy


class ClassificationObjective:
    """Sums over a batch, and the counts they are to be divided by; see `PretrainingObjective`.

    The losses are those of PyTorch and transformers: cross-entropy; binary cross-entropy, the mean over the labels;
    squared error. A batch has `example_weights` [batch] float32 (0 for an example that only fills the batch) and
    `labels`: [batch] int32 for classes, [batch, labels] float32 of 0 and 1 for several labels, [batch] float32 for
    regression. An example of weight 0 needs a label that exists, too.

    Args:
        problem_type: one of `config.heads.PROBLEM_TYPES`.
        class_weights: for classes, [labels] numbers: how much an example of each counts in the loss. The loss is then
            the weighted mean, as of `torch.nn.CrossEntropyLoss(weight)`; the accuracy counts all examples alike.

    Attributes:
        terms: names of the terms of the loss.
    """

    terms = ("loss",)

    def __init__(self, problem_type, class_weights=None):
        if problem_type not in PROBLEM_TYPES:
            raise ValueError(f"problem_type: needs one of {', '.join(PROBLEM_TYPES)}. Received: {problem_type!r}.")
        if class_weights is not None and problem_type != SINGLE_LABEL:
            raise ValueError(f"class_weights: needs {SINGLE_LABEL}. Received: {problem_type}.")
        self.problem_type = problem_type
        self.class_weights = None if class_weights is None else np.asarray(class_weights, "float32")

    def counts(self, batch):
        """Scalars float32: the weights in the loss, and for classes the examples in the accuracy."""
        counts = {"loss": ops.sum(self._loss_weights(batch))}
        if self.problem_type == SINGLE_LABEL:
            counts["accuracy"] = ops.sum(batch["example_weights"])
        return counts

    def sums(self, outputs, batch):
        """`{"loss": {"loss": scalar}}` from the model's outputs; for classes also the same of `accuracy`."""
        metrics = self._metrics(outputs["logits"], batch["labels"])
        sums = {"loss": {"loss": ops.sum(metrics["loss"] * self._loss_weights(batch))}}
        if self.problem_type == SINGLE_LABEL:
            sums["accuracy"] = {"accuracy": ops.sum(metrics["accuracy"] * batch["example_weights"])}
        return sums

    def _metrics(self, logits, labels):
        """`{name: [batch]}`."""
        if self.problem_type == REGRESSION:
            return {"loss": ops.square(logits[:, 0] - labels)}
        if self.problem_type == MULTI_LABEL:
            return {"loss": ops.mean(ops.binary_crossentropy(labels, logits, from_logits=True), axis=-1)}
        return cross_entropy(logits, labels)

    def _loss_weights(self, batch):
        if self.class_weights is None:
            return batch["example_weights"]
        return batch["example_weights"] * ops.take(self.class_weights, batch["labels"], axis=0)
