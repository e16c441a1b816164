"""Classification and regression of texts or pairs of texts."""

from typing import Any

import keras

from keras_bert.config.bert import BertConfig
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
