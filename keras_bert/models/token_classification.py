"""Token classification."""

from typing import Any

import keras

from keras_bert.config.bert import BertConfig
from keras_bert.models.encoder_with_heads import EncoderWithHeads
from keras_bert.models.tensors import Batch, Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForTokenClassification(EncoderWithHeads):
    """Dropout and a dense layer on each token's last hidden state (paper, section 5.3).

    Args:
        config: the architecture of the encoder.
        num_labels: the number of logits per token.

    Call arguments:
        inputs: the encoder's inputs.

    Returns a dict: `logits` [batch, seq, labels] float32, for padding too.
    """

    def __init__(self, config: BertConfig, num_labels: int, **kwargs: Any) -> None:
        super().__init__(config, with_pooler=False, **kwargs)
        self.num_labels = num_labels
        self.classifier = self.make_classifier(num_labels)
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        states = self.encoded(inputs, training=training)["sequence_output"]
        return {"logits": self.classifier(states, training=training)}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_labels": self.num_labels}
