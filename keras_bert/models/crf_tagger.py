"""Token classification with a conditional random field."""

from typing import Any

import keras
from keras import ops
from numpy.typing import ArrayLike

from keras_bert.config.bert import BertConfig
from keras_bert.layers.crf_tagging_head import CrfTaggingHead
from keras_bert.layers.linear_chain_crf import log_likelihood
from keras_bert.models.encoder_with_heads import EncoderWithHeads
from keras_bert.models.tensors import Batch, Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class BertCrfTagger(EncoderWithHeads):
    """A linear-chain CRF over the words of a sentence, whose emissions are a dense layer on their first pieces.

    Args:
        config: the architecture of the encoder.
        num_labels: the number of labels.
        forbidden: see `CrfTaggingHead`.

    Call arguments:
        inputs: the encoder's inputs. If they include `labels` [batch, seq], -1 at tokens without one, the labelled
            tokens are the chain; `sentence_starts` and `sentence_ends` [batch] then say whether it begins and ends
            where its sentence does.

    Returns a dict: `logits` [batch, seq, labels] float32, the emissions, for padding too; with labels also
    `log_likelihood` [batch], that of the labels, and `correct` [batch], how many of them are the most probable ones by
    their marginal probabilities.
    """

    def __init__(self, config: BertConfig, num_labels: int, forbidden: ArrayLike | None = None, **kwargs: Any) -> None:
        super().__init__(config, with_pooler=False, **kwargs)
        self.num_labels = num_labels
        self.crf = CrfTaggingHead(
            num_labels,
            config.hidden_size if self.bilstm is None else 2 * self.bilstm.lstm_size,
            forbidden,
            config.head_dropout_prob,
            config.initializer_range,
            dtype=self.dtype_policy,
            name="crf",
        )
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        states = self.encoded(inputs, training=training)["sequence_output"]
        logits = self.crf(states, training=training)
        if "labels" not in inputs:
            return {"logits": logits}
        labels = inputs["labels"]
        mask = labels >= 0
        chain = self.crf.chain(logits, mask, inputs["sentence_starts"], inputs["sentence_ends"])
        likelihood, marginals = log_likelihood(chain, labels)
        best = ops.cast(ops.argmax(marginals, axis=-1), "int32")
        correct = ops.sum(ops.cast(ops.logical_and(mask, best == labels), "float32"), axis=1)
        return {"logits": logits, "log_likelihood": likelihood, "correct": correct}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_labels": self.num_labels, "forbidden": self.crf.forbidden.tolist()}


@keras.saving.register_keras_serializable(package="keras_bert")
class BertSegmenter(BertCrfTagger):
    """A `BertCrfTagger` whose words are the characters of a text, and whose labels say where words begin and end."""
