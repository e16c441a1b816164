"""What pretraining minimises and measures: masked LM, and next sentence prediction (paper, section 3.1)."""

from keras import ops

from keras_bert.models.cross_entropy import cross_entropy

_LABELS = {"mlm": "masked_lm_ids", "nsp": "next_sentence_labels"}
_WEIGHTS = {"mlm": "masked_lm_weights", "nsp": "example_weights"}


class PretrainingObjective:
    """Sums over a batch, and the counts they are to be divided by.

    The loop divides sums over all replicas by counts over all replicas, so the loss is the mean over every
    prediction of the global batch and not a mean of means. Each term of the loss is `sums[term]["loss"]`
    over `counts[term]`; the loss is the terms' total.

    Args:
        mask_id: the id of [MASK], to tell the positions where nothing shows through.
        unigram_nats: [vocab] float32, -log p of each token in the training text. With it, `sums` measures the
            unigram's cross-entropy at the [MASK]ed positions too (for validation).
        next_sentence: whether batches have `next_sentence_labels`; without them the masked LM is the only term.

    Attributes:
        terms: names of the terms of the loss.
    """

    def __init__(self, mask_id, unigram_nats=None, next_sentence=True):
        self.terms = ("mlm", "nsp") if next_sentence else ("mlm",)
        self.mask_id = mask_id
        self.unigram_nats = unigram_nats

    def counts(self, batch):
        """Scalars float32: masked LM predictions, examples, and predictions whose input is [MASK] itself."""
        counts = {term: ops.sum(batch[_WEIGHTS[term]]) for term in self.terms}
        return {**counts, "mask_token": ops.sum(self._mask_token_weights(batch))}

    def sums(self, outputs, batch):
        """`{term: {metric: scalar}}` from a `BertForPreTraining`'s outputs.

        `mask_token` holds the loss at [MASK]ed positions alone: a kept or replaced token shows through or
        misleads, so the mixed masked LM loss says less of what was learned.
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

    def _mask_token_weights(self, batch):
        inputs = ops.take_along_axis(batch["input_word_ids"], batch["masked_lm_positions"], axis=1)
        return batch["masked_lm_weights"] * ops.cast(inputs == self.mask_id, "float32")
