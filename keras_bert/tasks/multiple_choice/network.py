"""The model that picks one of several continuations or answers."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.tensors import Batch, Tensor
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.encoder_with_heads import EncoderWithHeads


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForMultipleChoice(EncoderWithHeads):
    """A logit for each choice: dropout and a dense layer on its pooled [CLS] (paper, section 4.4).

    Call arguments:
        inputs: the encoder's inputs, each [batch, choices, seq] int32. A choice with a mask of zeros is absent.

    Returns a dict: `logits` [batch, choices] float32; -inf for absent choices.
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.classifier = self.make_classifier(1)
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        *_, seq = ops.shape(inputs["input_word_ids"])
        flat = {name: ops.reshape(value, (-1, seq)) for name, value in inputs.items() if name.startswith("input_")}
        pooled = self.pooled(flat, training)
        is_there = ops.any(inputs["input_mask"] > 0, axis=-1)
        logits = ops.reshape(self.classifier(pooled, training=training), ops.shape(is_there))
        return {"logits": ops.where(is_there, logits, float("-inf"))}
