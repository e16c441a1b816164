"""The model whose vectors of texts are compared by their cosine."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert.layers.heads import cross_entropy
from keras_bert.layers.pooling import mean_vectors
from keras_bert.layers.tensors import Batch, PlainLayer, Tensor
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.encoder_with_heads import EncoderWithHeads
from keras_bert.tasks.objective import ExampleObjective

INITIAL_SCALE, LARGEST_SCALE = 20.0, 100.0  # Reimers and Gurevych's library; Radford et al. 2021, section 2.5.


@keras.saving.register_keras_serializable(package="keras_bert")
class PairSimilarity(PlainLayer):
    """The scale of cosines, the inverse temperature of their softmax; it is learned as a logarithm (CLIP).

    Call argument: `vectors`, of any shape. Returns: the vectors times the scale, float32.
    """

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        initial = keras.initializers.Constant(float(np.log(INITIAL_SCALE)))
        self.log_scale = self.add_weight(name="log_scale", shape=(1,), initializer=initial, autocast=False)

    def call(self, vectors: Tensor) -> Tensor:
        scale = ops.exp(ops.minimum(ops.convert_to_tensor(self.log_scale), float(np.log(LARGEST_SCALE))))
        return ops.cast(vectors, "float32") * scale

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return input_shape


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForSentenceVectors(EncoderWithHeads):
    """Two texts through one encoder, each to the mean of its last states (Reimers and Gurevych 2019, section 3).

    Call arguments:
        inputs: the encoder's inputs, each [batch, 2 + negatives, seq] int32: the two texts of each pair, then its hard
            negatives, if it has any.

    Returns a dict, all float32: `logits` [batch, 1], the cosine; `anchors` [batch, hidden], the first texts' vectors of
    length 1, times the learned scale; `positives` [batch, hidden], the second texts', of length 1; and, with hard
    negatives, `negatives` [batch, negatives, hidden], of length 1.
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, with_pooler=False, **kwargs)
        self.num_labels = 1  # The cosine.
        self.similarity = PairSimilarity(dtype=self.dtype_policy, name="similarity")
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        batch, texts, seq = ops.shape(inputs["input_word_ids"])
        flat = {name: ops.reshape(value, (-1, seq)) for name, value in inputs.items() if name.startswith("input_")}
        states = self.encoder(flat, training=training)["sequence_output"]
        vectors = ops.reshape(mean_vectors(states, flat["input_mask"]), (-1, texts, self.config.hidden_size))
        first, second = vectors[:, 0], vectors[:, 1]
        outputs = {
            "logits": ops.sum(first * second, axis=-1, keepdims=True),
            "anchors": self.similarity(first),
            "positives": second,
        }
        if texts > 2:
            outputs["negatives"] = vectors[:, 2:]
        return outputs


MASKED_SIMILARITY = -1e9


class ContrastiveObjective(ExampleObjective):
    """Cross-entropy of each text's partner among all the batch's texts, in both directions.

    In-batch negatives: Henderson et al. 2017, section 4.4; Radford et al. 2021, figure 3.

    Hard negatives are candidates for every first text of the batch (Karpukhin et al. 2020, section 3.2). In the other
    direction, from the second texts to the first ones, there are none, as in sentence-transformers' symmetric loss.

    Negatives come from the same replica and slice of the batch. A text that equals the partner, token for token, is not
    a negative: nothing could tell them apart. A batch has `example_weights` [batch] float32, 0 for pairs that are not
    positive or only fill the batch; their texts still serve as negatives.
    """

    figures = ("loss", "accuracy")

    def figures_of(self, outputs: Batch, batch: Batch) -> dict[str, Tensor]:
        similarities = ops.matmul(outputs["anchors"], ops.transpose(outputs["positives"]))
        ids = batch["input_word_ids"]
        first, second = ids[:, 0], ids[:, 1]
        labels = ops.arange(ops.shape(ids)[0], dtype="int32")
        toward_first = cross_entropy(_without_equal(ops.transpose(similarities), first, first), labels)
        candidates = second
        if "negatives" in outputs:
            negatives = ops.reshape(outputs["negatives"], (-1, outputs["negatives"].shape[-1]))
            hard = ops.matmul(outputs["anchors"], ops.transpose(negatives))
            similarities = ops.concatenate([similarities, hard], axis=1)
            candidates = ops.concatenate([second, ops.reshape(ids[:, 2:], (-1, ops.shape(ids)[-1]))], axis=0)
        toward_second = cross_entropy(_without_equal(similarities, second, candidates), labels)
        return {name: 0.5 * (toward_second[name] + toward_first[name]) for name in self.figures}


def _without_equal(similarities: Tensor, partners: Tensor, candidates: Tensor) -> Tensor:
    """Masks similarities [batch, candidates] of texts to candidates that duplicate the text's own partner.

    Args:
        similarities: the partners are on the diagonal.
        partners: [batch, seq], the partners' tokens.
        candidates: [candidates, seq], the candidates' tokens.
    """
    is_equal = ops.all(ops.equal(partners[:, None], candidates[None]), axis=-1)
    rows, columns = ops.arange(ops.shape(partners)[0]), ops.arange(ops.shape(candidates)[0])
    is_partner = ops.equal(rows[:, None], columns[None])
    return ops.where(ops.logical_and(is_equal, ops.logical_not(is_partner)), MASKED_SIMILARITY, similarities)
