"""The losses and metrics of pretraining: masked LM (paper, section 3.1) and the objectives beside it."""

from collections.abc import Sequence

import numpy as np
from keras import ops

from keras_bert.layers.span_boundary_head import MOST_PLACES, span_places
from keras_bert.models.cross_entropy import cross_entropy
from keras_bert.models.tensors import Batch, Sums, Tensor

_LABELS = {
    "mlm": "masked_lm_ids",
    "nsp": "next_sentence_labels",
    "sop": "sentence_order_labels",
    "sbo": "masked_lm_ids",
}


class PretrainingObjective:
    """Sums over a batch, and the counts to divide them by.

    The training loop divides the sums over all replicas by the counts over all replicas, so the loss is the mean over
    all predictions of the global batch, not a mean of means. Each loss term is `sums[term]["loss"] / counts[term]`; the
    loss is the total of the terms.

    Args:
        mask_id: the id of [MASK], to find the positions where the input is [MASK].
        unigram_nats: [vocab] float32, -log p of each token in the training text. If given, `sums` also measures the
            unigram's cross-entropy at [MASK] positions (for validation).
        terms: the names of the loss terms, each with its `TERM_logits` and labels: `mlm`, and beside it `nsp` (next
            sentence), `sop` (sentence order) or `sbo` (span boundary).

    Attributes:
        terms: as given.
    """

    terms: tuple[str, ...]

    def __init__(
        self, mask_id: int, unigram_nats: np.ndarray | None = None, terms: Sequence[str] = ("mlm", "nsp")
    ) -> None:
        self.terms = tuple(terms)
        self.mask_id = mask_id
        self.unigram_nats = unigram_nats

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Float32 scalars: the predictions or examples of each term, and `mask_token`: those whose input is [MASK]."""
        counts = {term: ops.sum(self._weights(term, batch)) for term in self.terms}
        return {**counts, "mask_token": ops.sum(self._mask_token_weights(batch))}

    def sums(self, outputs: Batch, batch: Batch) -> Sums:
        """`{term: {metric: scalar}}` of a `BertForPreTraining`'s outputs.

        `mask_token` has the loss at [MASK] positions only. A kept token gives the answer away and a replaced one
        misleads, so the loss over all predictions tells less about what the model has learned.
        """
        metrics = {term: cross_entropy(outputs[f"{term}_logits"], batch[_LABELS[term]]) for term in self.terms}
        sums = {
            term: {name: ops.sum(values * self._weights(term, batch)) for name, values in metrics[term].items()}
            for term in self.terms
        }
        mask_token = self._mask_token_weights(batch)
        sums["mask_token"] = {"loss": ops.sum(metrics["mlm"]["loss"] * mask_token)}
        if self.unigram_nats is not None:
            unigram = ops.take(self.unigram_nats, batch["masked_lm_ids"], axis=0)
            sums["mask_token"]["unigram_loss"] = ops.sum(unigram * mask_token)
        return sums

    def _weights(self, term: str, batch: Batch) -> Tensor:
        if term in ("nsp", "sop"):
            return batch["example_weights"]
        weights = batch["masked_lm_weights"]
        if term == "sbo":  # As in SpanBERT's code, a span's tokens beyond the last position embedding do not count.
            weights = weights * ops.cast(span_places(batch["masked_lm_positions"]).place < MOST_PLACES, "float32")
        return weights

    def _mask_token_weights(self, batch: Batch) -> Tensor:
        inputs = ops.take_along_axis(batch["input_word_ids"], batch["masked_lm_positions"], axis=1)
        return batch["masked_lm_weights"] * ops.cast(inputs == self.mask_id, "float32")
