"""The model for classes, several labels or a number of a text or a pair of texts."""

import keras

from keras_bert.models.encoder_with_heads import EncoderWithHeads


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForSequenceClassification(EncoderWithHeads):
    """The pooled [CLS] under dropout and a dense layer (paper, section 4.1).

    Args:
        config: a `BertConfig`.
        num_labels: how many logits; 1 for regression.

    Call arguments:
        inputs: the encoder's dict.

    Returns a dict: `logits` [batch, labels], float32.
    """

    def __init__(self, config, num_labels, **kwargs):
        super().__init__(config, **kwargs)
        self.num_labels = num_labels
        self.classifier = self.make_classifier(num_labels)
        self.build()

    def call(self, inputs, training=False):
        pooled = self.encoder(inputs, training=training)["pooled_output"]
        return {"logits": self.classifier(pooled, training=training)}

    def get_config(self):
        return {
            **super().get_config(),
            "num_labels": self.num_labels,
        }
