"""Extractive question answering: at each token, a logit for the start and one for the end of the answer."""

from typing import Any

import keras

from keras_bert.config.bert import BertConfig
from keras_bert.models.encoder_with_heads import EncoderWithHeads
from keras_bert.models.tensors import Batch, Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForQuestionAnswering(EncoderWithHeads):
    """A dense layer with two outputs on each token's last hidden state (paper, section 4.2; run_squad.py).

    Args:
        config: the architecture of the encoder.

    Call arguments:
        inputs: the encoder's inputs.

    Returns a dict: `start_logits` and `end_logits`, each [batch, seq] float32, for padding too.
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, with_pooler=False, **kwargs)
        # The original has no dropout here (run_squad.py, `create_model`).
        self.qa_outputs = self.make_classifier(2, "qa_outputs", dropout_prob=0.0)
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        states = self.encoded(inputs, training=training)["sequence_output"]
        logits = self.qa_outputs(states, training=training)
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}
