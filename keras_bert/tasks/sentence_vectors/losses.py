"""Losses of pairs of vectors besides the in-batch one, and Matryoshka, which averages any of them over sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keras import ops

from keras_bert.config.finetuning import COSENT, COSINE, IN_BATCH, REGRESSION, TRIPLET, VectorsConfig
from keras_bert.layers.pooling import at_length_one
from keras_bert.layers.tensors import Batch, Sums, Tensor
from keras_bert.tasks.classification.network import ClassificationObjective
from keras_bert.tasks.objective import ExampleObjective
from keras_bert.tasks.sentence_vectors.network import INITIAL_SCALE, MASKED_SIMILARITY, ContrastiveObjective


class CosentObjective(ExampleObjective):
    """CoSENT (Su 2022): log(1 + Σ exp(20 (cos_i - cos_j))) over all i and j with score_i < score_j.

    A batch has `labels` [batch] float32, scores of any range: only their order counts. Pairs are compared within a
    replica and slice of the batch; the losses of several slices are averaged, weighted by their pairs.
    """

    def sums(self, outputs: Batch, batch: Batch) -> Sums:
        """`{"loss": {"loss": scalar}}`."""
        cosines, scores, weights = outputs["logits"][:, 0], batch["labels"], batch["example_weights"]
        is_real = weights > 0
        is_compared = ops.logical_and(scores[:, None] < scores, ops.logical_and(is_real[:, None], is_real))
        differences = INITIAL_SCALE * (cosines[:, None] - cosines)
        compared = ops.where(is_compared, differences, MASKED_SIMILARITY)
        loss = ops.softplus(ops.logsumexp(compared))  # 0 if nothing is compared.
        return {"loss": {"loss": loss * ops.sum(weights)}}


class TripletObjective(ExampleObjective):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d = 1 - cosine, averaged over the hard negatives.

    Reimers and Gurevych 2019, section 3, take Euclidean distances of vectors of any length; those here have length 1,
    for which the squared Euclidean distance is 2d. Evaluation pairs have no negatives and therefore no loss.

    Args:
        margin: how much further than the positive a negative must be.
    """

    figures = ("loss", "accuracy")

    def __init__(self, margin: float):
        self._margin = margin

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """`{"loss": …, "accuracy": …}`, float32 scalars: the total weight of the pairs, 0 without negatives."""
        has_negatives = float(batch["input_word_ids"].shape[1] > 2)
        return {name: count * has_negatives for name, count in super().counts(batch).items()}

    def figures_of(self, outputs: Batch, batch: Batch) -> dict[str, Tensor]:
        """`accuracy` is the share of negatives that are further than the positive."""
        if "negatives" not in outputs:
            return dict.fromkeys(self.figures, ops.zeros_like(batch["example_weights"]))
        anchors = at_length_one(outputs["anchors"])[:, None]
        margins = outputs["logits"] - ops.sum(anchors * outputs["negatives"], axis=-1)  # [batch, negatives]
        is_further = ops.cast(margins > 0, "float32")
        return {"loss": ops.mean(ops.relu(self._margin - margins), axis=1), "accuracy": ops.mean(is_further, axis=1)}


class MatryoshkaObjective:
    """The mean of an objective's figures at several sizes of the vectors (Kusupati et al. 2022, section 3).

    sentence-transformers sums the losses; their mean suits the learning rate and gradient clipping of a single loss.

    Args:
        objective: any other objective of this folder.
        sizes: the numbers of first dimensions to keep.
    """

    def __init__(self, objective: Any, sizes: Sequence[int]):
        self._objective, self._sizes = objective, tuple(sizes)
        self.terms = objective.terms

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """The counts of the objective."""
        return self._objective.counts(batch)

    def sums(self, outputs: Batch, batch: Batch) -> Sums:
        """The sums of the objective, averaged over the sizes."""
        by_size = [self._objective.sums(at_size(outputs, size), batch) for size in self._sizes]
        return {
            term: {name: sum(sums[term][name] for sums in by_size) / len(by_size) for name in metrics}
            for term, metrics in by_size[0].items()
        }


def at_size(outputs: Batch, size: int) -> Batch:
    """The outputs of `BertForSentenceVectors` for vectors cut to their first `size` dimensions, at length 1."""
    anchors, positives = (at_length_one(outputs[name][:, :size]) for name in ("anchors", "positives"))
    scales = ops.sqrt(ops.sum(ops.square(outputs["anchors"]), axis=-1, keepdims=True))
    found = {
        "logits": ops.sum(anchors * positives, axis=-1, keepdims=True),
        "anchors": anchors * scales,
        "positives": positives,
    }
    if "negatives" in outputs:
        found["negatives"] = at_length_one(outputs["negatives"][..., :size])
    return found


def make_objective(vectors: VectorsConfig) -> Any:
    """The `Objective` of a recipe."""
    objectives: dict[str, Callable[[], Any]] = {
        IN_BATCH: ContrastiveObjective,
        # Squared error of the cosine (Reimers and Gurevych 2019, section 3); the labels are scores from 0 to 1.
        COSINE: lambda: ClassificationObjective(REGRESSION),
        COSENT: CosentObjective,
        TRIPLET: lambda: TripletObjective(vectors.margin),
    }
    objective = objectives[vectors.loss]()
    return MatryoshkaObjective(objective, vectors.matryoshka) if vectors.matryoshka else objective
