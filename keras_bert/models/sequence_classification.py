"""Classification and regression of texts or pairs of texts."""

from typing import Any

import keras

from keras_bert.config.bert import BertConfig
from keras_bert.layers.next_sentence_head import NextSentenceHead
from keras_bert.models.encoder_with_heads import EncoderWithHeads
from keras_bert.models.tensors import Batch, Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForSequenceClassification(EncoderWithHeads):
    """Dropout and a dense layer on the pooled [CLS] (paper, section 4.1).

    Args:
        config: the architecture of the encoder.
        num_labels: the number of logits; 1 for regression.

    Call arguments:
        inputs: the encoder's inputs.

    Returns a dict: `logits` [batch, labels] float32.
    """

    def __init__(self, config: BertConfig, num_labels: int, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.num_labels = num_labels
        self.classifier = self.make_classifier(num_labels)
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        pooled = self.encoded(inputs, training=training)["pooled_output"]
        return {"logits": self.classifier(pooled, training=training)}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_labels": self.num_labels}


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForNextSentencePrediction(EncoderWithHeads):
    """Whether the second text of a pair follows the first, by the head of pretraining (paper, section 3.1, task 2).

    Args:
        config: the architecture of the encoder.

    Call arguments:
        inputs: the encoder's inputs.

    Returns a dict: `logits` [batch, 2] float32, for "it follows" and "it does not".
    """

    num_labels = 2

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        deviation = config.initializer_range
        self.nsp_head = NextSentenceHead(config.hidden_size, deviation, dtype=self.dtype_policy, name="nsp_head")
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        return {"logits": self.nsp_head(self.encoded(inputs, training=training)["pooled_output"])}
