"""The model whose vectors of texts are compared by their cosine."""

from typing import Any

import keras
from keras import ops

from keras_bert.config.bert import BertConfig
from keras_bert.layers.pair_similarity import PairSimilarity
from keras_bert.models.encoder_with_heads import EncoderWithHeads
from keras_bert.models.tensors import Batch, Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForSentenceVectors(EncoderWithHeads):
    """Two texts through one encoder, each to the mean of its last states (Reimers and Gurevych 2019, section 3).

    Args:
        config: the architecture of the encoder.

    Call arguments:
        inputs: the encoder's inputs, each [batch, 2, seq] int32: the two texts of each pair.

    Returns a dict, all float32: `logits` [batch, 1], the cosine; `anchors` [batch, hidden], the first texts' vectors of
    length 1, times the learned scale; `positives` [batch, hidden], the second ones' of length 1.
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, with_pooler=False, **kwargs)
        self.num_labels = 1  # The cosine.
        self.similarity = PairSimilarity(dtype=self.dtype_policy, name="similarity")
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        batch, pair, seq = ops.shape(inputs["input_word_ids"])
        flat = {name: ops.reshape(value, (-1, seq)) for name, value in inputs.items() if name.startswith("input_")}
        states = self.encoder(flat, training=training)["sequence_output"]
        vectors = ops.reshape(mean_vectors(states, flat["input_mask"]), (-1, pair, self.config.hidden_size))
        first, second = vectors[:, 0], vectors[:, 1]
        return {
            "logits": ops.sum(first * second, axis=-1, keepdims=True),
            "anchors": self.similarity(first),
            "positives": second,
        }


def mean_vectors(states: Tensor, input_mask: Tensor) -> Tensor:
    """The mean [batch, hidden] of states [batch, seq, hidden] over the tokens of each row, at length 1, in float32."""
    mask = ops.cast(input_mask, "float32")[..., None]
    mean = ops.sum(ops.cast(states, "float32") * mask, axis=1) / ops.maximum(ops.sum(mask, axis=1), 1.0)
    return mean / ops.maximum(ops.sqrt(ops.sum(ops.square(mean), axis=-1, keepdims=True)), 1e-9)
