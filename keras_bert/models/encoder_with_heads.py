"""What the models of pretraining and of every task share: one encoder, and heads on it."""

import dataclasses

import keras

from keras_bert.config.bert import BertConfig
from keras_bert.layers.classification_head import ClassificationHead
from keras_bert.models.encoder import BertEncoder


class EncoderWithHeads(keras.Model):
    """An encoder; a subclass makes its heads and then calls `build()`.

    Args:
        config: a `BertConfig`.
        with_pooler: whether the encoder has its pooler.
    """

    def __init__(self, config, with_pooler=True, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.encoder = BertEncoder(config, with_pooler=with_pooler, dtype=self.dtype_policy, name="encoder")

    def make_classifier(self, num_labels, name="classifier", dropout_prob=None):
        """A `ClassificationHead` for this encoder; its dropout is the config's where none is given."""
        config = self.config
        dropout_prob = config.hidden_dropout_prob if dropout_prob is None else dropout_prob
        return ClassificationHead(
            num_labels, config.hidden_size, dropout_prob, config.initializer_range, dtype=self.dtype_policy, name=name
        )

    def build(self, input_shape=None):
        for layer in self.layers:
            if not layer.built:
                layer.build((None, self.config.hidden_size))

    def get_config(self):
        return {"name": self.name, "dtype": self.dtype_policy.name, "config": dataclasses.asdict(self.config)}

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "config": BertConfig(**config["config"])})
