"""What fine-tuning a `BertForQuestionAnswering` minimises and measures."""

from keras import ops

from keras_bert.models.cross_entropy import cross_entropy


class SpanObjective:
    """Sums over a batch, and the counts they are to be divided by; see `PretrainingObjective`.

    The loss is the mean of the cross-entropies of the first and the last piece of the answer, each over the whole
    sequence, padding included (run_squad.py, `compute_loss`). A batch has `example_weights` [batch] float32 (0 for a
    row that only fills the batch), and `start_positions` and `end_positions` [batch] int32: 0, the place of [CLS], for
    no answer.

    Attributes:
        terms: names of the terms of the loss.
    """

    terms = ("loss",)

    def counts(self, batch):
        """Scalars float32: the weights of the loss and of the accuracies."""
        count = ops.sum(batch["example_weights"])
        return {"loss": count, "accuracy": count}

    def sums(self, outputs, batch):
        """`{"loss": {"loss"}, "accuracy": {"start", "end"}}` of scalars.

        `outputs` are the model's `start_logits` and `end_logits` [batch, seq] float32.
        """
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
