"""The model for classes, several labels or a number of a text or a pair of texts."""

import dataclasses

import keras

from keras_bert.config.bert import BertConfig
from keras_bert.layers.classification_head import ClassificationHead
from keras_bert.models.encoder import BertEncoder


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForSequenceClassification(keras.Model):
    """The pooled [CLS] under dropout and a dense layer (paper, section 4.1).

    Args:
        config: a `BertConfig`.
        num_labels: how many logits; 1 for regression.

    Call arguments:
        inputs: the encoder's dict.

    Returns a dict: `logits` [batch, labels], float32.
    """

    def __init__(self, config, num_labels, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.num_labels = num_labels
        policy = self.dtype_policy
        self.encoder = BertEncoder(config, dtype=policy, name="encoder")
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
        self.classifier.build((None, self.config.hidden_size))

    def call(self, inputs, training=False):
        pooled = self.encoder(inputs, training=training)["pooled_output"]
        return {"logits": self.classifier(pooled, training=training)}

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
