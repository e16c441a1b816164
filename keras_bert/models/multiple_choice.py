"""The model that picks one of several continuations or answers."""

import dataclasses

import keras
from keras import ops

from keras_bert.config.bert import BertConfig
from keras_bert.layers.classification_head import ClassificationHead
from keras_bert.models.encoder import BertEncoder


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForMultipleChoice(keras.Model):
    """One number a choice, of its pooled [CLS] under dropout and a dense layer (paper, section 4.4).

    Args:
        config: a `BertConfig`.

    Call arguments:
        inputs: the encoder's dict, each [batch, choices, seq] int32. A choice whose mask is 0 throughout is absent.

    Returns a dict: `logits` [batch, choices], float32; -inf for a choice that is absent.
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        policy = self.dtype_policy
        self.encoder = BertEncoder(config, dtype=policy, name="encoder")
        self.classifier = ClassificationHead(
            1,
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
        *_, seq = ops.shape(inputs["input_word_ids"])
        flat = {name: ops.reshape(value, (-1, seq)) for name, value in inputs.items() if name.startswith("input_")}
        pooled = self.encoder(flat, training=training)["pooled_output"]
        is_there = ops.any(inputs["input_mask"] > 0, axis=-1)
        logits = ops.reshape(self.classifier(pooled, training=training), ops.shape(is_there))
        return {"logits": ops.where(is_there, logits, float("-inf"))}

    def get_config(self):
        return {"name": self.name, "dtype": self.dtype_policy.name, "config": dataclasses.asdict(self.config)}

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "config": BertConfig(**config["config"])})
