"""The losses and metrics of pretraining: masked or next tokens (paper, section 3.1) and the objectives beside it."""

from collections.abc import Sequence

import numpy as np
from keras import ops

from keras_bert.layers.span_boundary_head import MOST_PLACES, span_places
from keras_bert.models.cross_entropy import cross_entropy
from keras_bert.models.tensors import Batch, Sums, Tensor

# The terms of which a run has one: what the token head predicts.
_OF_TOKENS = ("mlm", "lm")
_LABELS = {
    "nsp": "next_sentence_labels",
    "sop": "sentence_order_labels",
    "sbo": "masked_lm_ids",
    "previous": "previous_token_ids",
}


class PretrainingObjective:
    """Sums over a batch, and the counts to divide them by.

    The training loop divides the sums over all replicas by the counts over all replicas, so the loss is the mean over
    all predictions of the global batch, not a mean of means. Each loss term is `sums[term]["loss"] / counts[term]`; the
    loss is the total of the terms.

    Args:
        mask_id: the id of [MASK], to find the positions where the input is [MASK].
        unigram_nats: [vocab] float32, -log p of each token in the training text. If given, `sums` also measures the
            unigram's cross-entropy at [MASK] positions or, of next tokens, at those of text (for validation).
        terms: the names of the loss terms: `mlm` or `lm`, which is what the token head predicts; and beside it `nsp`
            (next sentence), `sop` (sentence order), `sbo` (span boundary) or `previous` (previous tokens), each with
            its `TERM_logits` and labels.
            Whether masked or next tokens are predicted follows from the batch, so a run whose phases differ in that
            keeps its terms.
        sep_id: the id of [SEP], which is predicted as a next token but not counted as text.

    Attributes:
        terms: as given.
    """

    terms: tuple[str, ...]

    def __init__(
        self,
        mask_id: int,
        unigram_nats: np.ndarray | None = None,
        terms: Sequence[str] = ("mlm", "nsp"),
        sep_id: int | None = None,
    ) -> None:
        self.terms = tuple(terms)
        self.mask_id = mask_id
        self.unigram_nats = unigram_nats
        self.sep_id = sep_id

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Float32 scalars: the predictions or examples of each term, and those of `mask_token` or `text_token`."""
        counts = {term: ops.sum(self._weights(term, batch)) for term in self.terms}
        name, weights = self._telling(batch)
        return {**counts, name: ops.sum(weights)}

    def sums(self, outputs: Batch, batch: Batch) -> Sums:
        """`{term: {metric: scalar}}` of a `BertForPreTraining`'s outputs.

        `mask_token` has the loss at [MASK] positions only. A kept token gives the answer away and a replaced one
        misleads, so the loss over all predictions tells less about what the model has learned. Of next tokens,
        `text_token` has the loss without those that are [SEP], which the unigram does not know.
        """
        metrics = {
            term: cross_entropy(outputs[f"{_head(term)}_logits"], self._labels(term, batch)) for term in self.terms
        }
        sums = {
            term: {name: ops.sum(values * self._weights(term, batch)) for name, values in metrics[term].items()}
            for term in self.terms
        }
        of_tokens = self.terms[0]
        name, weights = self._telling(batch)
        sums[name] = {"loss": ops.sum(metrics[of_tokens]["loss"] * weights)}
        if self.unigram_nats is not None:
            unigram = ops.take(self.unigram_nats, self._labels(of_tokens, batch), axis=0)
            sums[name]["unigram_loss"] = ops.sum(unigram * weights)
        return sums

    def _labels(self, term: str, batch: Batch) -> Tensor:
        if term in _OF_TOKENS:
            return batch["next_token_ids"] if _predicts_next(batch) else batch["masked_lm_ids"]
        return batch[_LABELS[term]]

    def _weights(self, term: str, batch: Batch) -> Tensor:
        if term in ("nsp", "sop"):
            return batch["example_weights"]
        if _predicts_next(batch):
            return batch["previous_token_weights" if term == "previous" else "next_token_weights"]
        weights = batch["masked_lm_weights"]
        if term == "sbo":  # As in SpanBERT's code, a span's tokens beyond the last position embedding do not count.
            weights = weights * ops.cast(span_places(batch["masked_lm_positions"]).place < MOST_PLACES, "float32")
        return weights

    def _telling(self, batch: Batch) -> tuple[str, Tensor]:
        """The name and the weights of the predictions that tell what was learned."""
        if _predicts_next(batch):
            assert self.sep_id is not None
            is_text = ops.cast(batch["next_token_ids"] != self.sep_id, "float32")
            return "text_token", batch["next_token_weights"] * is_text
        inputs = ops.take_along_axis(batch["input_word_ids"], batch["masked_lm_positions"], axis=1)
        return "mask_token", batch["masked_lm_weights"] * ops.cast(inputs == self.mask_id, "float32")


def _predicts_next(batch: Batch) -> bool:
    return "next_token_ids" in batch


def _head(term: str) -> str:
    """The name of the head whose logits a term takes."""
    return "mlm" if term in _OF_TOKENS else term
