"""The model for a label of each token."""

import keras

from keras_bert.models.encoder_with_heads import EncoderWithHeads


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForTokenClassification(EncoderWithHeads):
    """Each token's last state under dropout and a dense layer (paper, section 5.3).

    Args:
        config: a `BertConfig`.
        num_labels: how many logits a token.

    Call arguments:
        inputs: the encoder's dict.

    Returns a dict: `logits` [batch, seq, labels], float32, of padding too.
    """

    def __init__(self, config, num_labels, **kwargs):
        super().__init__(config, with_pooler=False, **kwargs)
        self.num_labels = num_labels
        self.classifier = self.make_classifier(num_labels)
        self.build()

    def call(self, inputs, training=False):
        states = self.encoder(inputs, training=training)["sequence_output"]
        return {"logits": self.classifier(states, training=training)}

    def get_config(self):
        return {
            **super().get_config(),
            "num_labels": self.num_labels,
        }
