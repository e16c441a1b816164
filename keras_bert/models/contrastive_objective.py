"""The loss that brings the vectors of pairs together, away from those of the other pairs of the batch."""

from keras import ops

from keras_bert.models.cross_entropy import cross_entropy
from keras_bert.models.tensors import Batch, Sums, Tensor

_NEVER = -1e9


class ContrastiveObjective:
    """Cross-entropy of each text's partner among all of the batch, in both directions (in-batch negatives; Henderson
    et al. 2017, section 4.4; Radford et al. 2021, figure 3); see `PretrainingObjective`.

    The negatives are those of the same replica and slice of the batch. A text that equals the partner, token for token,
    is no negative: nothing could tell them apart. A batch has `example_weights` [batch] float32, 0 for pairs that are
    not positive or fill the batch; their texts are negatives all the same.

    Attributes:
        terms: the names of the loss terms.
    """

    terms: tuple[str, ...] = ("loss",)

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """`{term: float32 scalar}`: the weight of the pairs."""
        weights = ops.sum(batch["example_weights"])
        return {"loss": weights, "accuracy": weights}

    def sums(self, outputs: Batch, batch: Batch) -> Sums:
        """`{"loss": {"loss": scalar}, "accuracy": {"accuracy": scalar}}`."""
        similarities = ops.matmul(outputs["anchors"], ops.transpose(outputs["positives"]))
        ids = batch["input_word_ids"]
        weights, labels = batch["example_weights"], ops.arange(ops.shape(ids)[0], dtype="int32")
        toward_second = cross_entropy(_without_equal(similarities, ids[:, 1]), labels)
        toward_first = cross_entropy(_without_equal(ops.transpose(similarities), ids[:, 0]), labels)
        loss, accuracy = (
            0.5 * ops.sum((toward_second[name] + toward_first[name]) * weights) for name in ("loss", "accuracy")
        )
        return {"loss": {"loss": loss}, "accuracy": {"accuracy": accuracy}}


def _without_equal(similarities: Tensor, ids: Tensor) -> Tensor:
    """Similarities [batch, batch] of texts to candidates, without candidates that equal a text's own partner.

    Args:
        similarities: the partners are on the diagonal.
        ids: [batch, seq], the candidates' tokens.
    """
    count = ops.shape(ids)[0]
    is_equal = ops.all(ops.equal(ids[:, None], ids[None]), axis=-1)
    is_partner = ops.equal(ops.arange(count)[:, None], ops.arange(count)[None])
    return ops.where(ops.logical_and(is_equal, ops.logical_not(is_partner)), _NEVER, similarities)
