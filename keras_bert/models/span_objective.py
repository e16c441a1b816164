"""The loss and accuracy of fine-tuning a `BertForQuestionAnswering`."""

from keras import ops

from keras_bert.models.cross_entropy import cross_entropy
from keras_bert.models.tensors import Batch, Sums, Tensor


class SpanObjective:
    """Sums over a batch, and the counts to divide them by; see `PretrainingObjective`.

    The loss is the mean of two cross-entropies, for the first and the last piece of the answer, each over the whole
    sequence, padding included (run_squad.py, `compute_loss`). A batch has `example_weights` [batch] float32 (0 for
    padding rows), and `start_positions` and `end_positions` [batch] int32, both 0, the position of [CLS], if there is
    no answer.

    Attributes:
        terms: the names of the loss terms.
    """

    terms: tuple[str, ...] = ("loss",)

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Float32 scalars: the total weight, for the loss and for the accuracies."""
        count = ops.sum(batch["example_weights"])
        return {"loss": count, "accuracy": count}

    def sums(self, outputs: Batch, batch: Batch) -> Sums:
        """`{"loss": {"loss": scalar}, "accuracy": {"start": scalar, "end": scalar}}` of the model's outputs."""
        start = cross_entropy(outputs["start_logits"], batch["start_positions"])
        end = cross_entropy(outputs["end_logits"], batch["end_positions"])
        weights = batch["example_weights"]
        return {
            "loss": {"loss": 0.5 * ops.sum((start["loss"] + end["loss"]) * weights)},
            "accuracy": {
                "start": ops.sum(start["accuracy"] * weights),
                "end": ops.sum(end["accuracy"] * weights),
            },
        }
