"""The model for a label of each token."""

import dataclasses

import keras

from keras_bert.config.bert import BertConfig
from keras_bert.layers.classification_head import ClassificationHead
from keras_bert.models.encoder import BertEncoder


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForTokenClassification(keras.Model):
    """Each token's last state under dropout and a dense layer (paper, section 5.3).

    Args:
        config: a `BertConfig`.
        num_labels: how many logits a token.

    Call arguments:
        inputs: the encoder's dict.

    Returns a dict: `logits` [batch, seq, labels], float32, of padding too.
    """

    def __init__(self, config, num_labels, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.num_labels = num_labels
        policy = self.dtype_policy
        self.encoder = BertEncoder(config, with_pooler=False, dtype=policy, name="encoder")
        self.classifier = ClassificationHead(
            num_labels,
            config.hidden_size,
            config.hidden_dropout_prob,
            config.initializer_range,
            dtype=policy,
            name="classifier",
        )
        self.build()

    def build(self, input_shape=None):
        if self.built:
            return
        self.classifier.build((None, None, self.config.hidden_size))

    def call(self, inputs, training=False):
        states = self.encoder(inputs, training=training)["sequence_output"]
        return {"logits": self.classifier(states, training=training)}

    def get_config(self):
        return {
            "name": self.name,
            "dtype": self.dtype_policy.name,
            "config": dataclasses.asdict(self.config),
            "num_labels": self.num_labels,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "config": BertConfig(**config["config"])})
