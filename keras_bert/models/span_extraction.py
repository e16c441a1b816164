"""The model that finds an answer in a passage: the scores of its start and of its end at every token."""

import dataclasses

import keras

from keras_bert.config.bert import BertConfig
from keras_bert.layers.classification_head import ClassificationHead
from keras_bert.models.encoder import BertEncoder


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForQuestionAnswering(keras.Model):
    """Each token's last state under a dense layer of two outputs (paper, section 4.2; run_squad.py, `create_model`).

    Args:
        config: a `BertConfig`.

    Call arguments:
        inputs: the encoder's dict.

    Returns a dict: `start_logits` and `end_logits`, each [batch, seq], float32, of padding too.
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        policy = self.dtype_policy
        self.encoder = BertEncoder(config, with_pooler=False, dtype=policy, name="encoder")
        # The original drops nothing here.
        self.qa_outputs = ClassificationHead(
            2, config.hidden_size, 0.0, config.initializer_range, dtype=policy, name="qa_outputs"
        )
        self.build()

    def build(self, input_shape=None):
        if self.built:
            return
        self.qa_outputs.build((None, None, self.config.hidden_size))

    def call(self, inputs, training=False):
        states = self.encoder(inputs, training=training)["sequence_output"]
        logits = self.qa_outputs(states, training=training)
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}

    def get_config(self):
        return {"name": self.name, "dtype": self.dtype_policy.name, "config": dataclasses.asdict(self.config)}

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "config": BertConfig(**config["config"])})
