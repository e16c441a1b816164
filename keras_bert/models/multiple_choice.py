"""The model that picks one of several continuations or answers."""

import keras
from keras import ops

from keras_bert.models.encoder_with_heads import EncoderWithHeads


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForMultipleChoice(EncoderWithHeads):
    """One number a choice, of its pooled [CLS] under dropout and a dense layer (paper, section 4.4).

    Args:
        config: a `BertConfig`.

    Call arguments:
        inputs: the encoder's dict, each [batch, choices, seq] int32. A choice whose mask is 0 throughout is absent.

    Returns a dict: `logits` [batch, choices], float32; -inf for a choice that is absent.
    """

    def __init__(self, config, **kwargs):
        super().__init__(config, **kwargs)
        self.classifier = self.make_classifier(1)
        self.build()

    def call(self, inputs, training=False):
        *_, seq = ops.shape(inputs["input_word_ids"])
        flat = {name: ops.reshape(value, (-1, seq)) for name, value in inputs.items() if name.startswith("input_")}
        pooled = self.encoder(flat, training=training)["pooled_output"]
        is_there = ops.any(inputs["input_mask"] > 0, axis=-1)
        logits = ops.reshape(self.classifier(pooled, training=training), ops.shape(is_there))
        return {"logits": ops.where(is_there, logits, float("-inf"))}
