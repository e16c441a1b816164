"""The losses and metrics of pretraining: masked LM and next sentence prediction (paper, section 3.1)."""

import numpy as np
from keras import ops

from keras_bert.models.cross_entropy import cross_entropy
from keras_bert.models.tensors import Batch, Sums, Tensor

_LABELS = {"mlm": "masked_lm_ids", "nsp": "next_sentence_labels"}
_WEIGHTS = {"mlm": "masked_lm_weights", "nsp": "example_weights"}


class PretrainingObjective:
    """Sums over a batch, and the counts to divide them by.

    The training loop divides the sums over all replicas by the counts over all replicas, so the loss is the mean over
    all predictions of the global batch, not a mean of means. Each loss term is `sums[term]["loss"] / counts[term]`; the
    loss is the total of the terms.

    Args:
        mask_id: the id of [MASK], to find the positions where the input is [MASK].
        unigram_nats: [vocab] float32, -log p of each token in the training text. If given, `sums` also measures the
            unigram's cross-entropy at [MASK] positions (for validation).
        next_sentence: whether batches have `next_sentence_labels`; otherwise the masked LM is the only term.

    Attributes:
        terms: the names of the loss terms.
    """

    terms: tuple[str, ...]

    def __init__(self, mask_id: int, unigram_nats: np.ndarray | None = None, next_sentence: bool = True) -> None:
        self.terms = ("mlm", "nsp") if next_sentence else ("mlm",)
        self.mask_id = mask_id
        self.unigram_nats = unigram_nats

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Float32 scalars: masked LM predictions, examples, and predictions whose input is [MASK]."""
        counts = {term: ops.sum(batch[_WEIGHTS[term]]) for term in self.terms}
        return {**counts, "mask_token": ops.sum(self._mask_token_weights(batch))}

    def sums(self, outputs: Batch, batch: Batch) -> Sums:
        """`{term: {metric: scalar}}` of a `BertForPreTraining`'s outputs.

        `mask_token` has the loss at [MASK] positions only. A kept token gives the answer away and a replaced one
        misleads, so the loss over all predictions tells less about what the model has learned.
        """
        metrics = {term: cross_entropy(outputs[f"{term}_logits"], batch[_LABELS[term]]) for term in self.terms}
        sums = {
            term: {name: ops.sum(values * batch[_WEIGHTS[term]]) for name, values in metrics[term].items()}
            for term in self.terms
        }
        mask_token = self._mask_token_weights(batch)
        sums["mask_token"] = {"loss": ops.sum(metrics["mlm"]["loss"] * mask_token)}
        if self.unigram_nats is not None:
            unigram = ops.take(self.unigram_nats, batch["masked_lm_ids"], axis=0)
            sums["mask_token"]["unigram_loss"] = ops.sum(unigram * mask_token)
        return sums

    def _mask_token_weights(self, batch: Batch) -> Tensor:
        inputs = ops.take_along_axis(batch["input_word_ids"], batch["masked_lm_positions"], axis=1)
        return batch["masked_lm_weights"] * ops.cast(inputs == self.mask_id, "float32")
