"""The loss and accuracy of fine-tuning a `BertCrfTagger`."""

from keras import ops

from keras_bert.models.tagging_objective import TaggingObjective
from keras_bert.models.tensors import Batch, Sums


class CrfObjective(TaggingObjective):
    """As `TaggingObjective`; the loss is the negative log-likelihood of the labels of each row, per word."""

    def sums(self, outputs: Batch, batch: Batch) -> Sums:
        """`{"loss": {"loss": scalar}, "accuracy": {"accuracy": scalar}}` of the model's outputs."""
        weights = batch["example_weights"]
        return {
            "loss": {"loss": -ops.sum(outputs["log_likelihood"] * weights)},
            "accuracy": {"accuracy": ops.sum(outputs["correct"] * weights)},
        }
