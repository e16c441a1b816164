"""BERT's encoder with a bidirectional GRU or LSTM in place of self-attention."""

from typing import Any

import keras
from keras import ops

from keras_bert.config.recurrent import RecurrentConfig
from keras_bert.layers.encoder_block import EncoderBlock
from keras_bert.layers.recurrence import Recurrence
from keras_bert.models.encoder import BertEncoder
from keras_bert.models.tensors import Batch, Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class RecurrentEncoder(BertEncoder):
    """`BertEncoder` with a `RecurrentConfig`. It has no attentions, and `recompute_every` must be 0."""

    recomputes = False
    config: RecurrentConfig

    def make_block(self, index: int, **options: Any) -> EncoderBlock:
        config = self.config
        recurrence = Recurrence(config.hidden_size, config.block, dtype=self.dtype_policy, name="recurrence")
        return super().make_block(index, attention=recurrence, **options)

    def call(
        self, inputs: Batch, training: bool = False, return_attentions: bool = False, causal: bool | None = None
    ) -> dict[str, Any]:
        for option, value in (("return_attentions", return_attentions), ("causal", causal)):
            if value:
                raise ValueError(
                    f"{option}: needs a model with attention. Received: one of {self.config.block} blocks."
                )
        return super().call(inputs, training=training)

    def visibility(self, input_mask: Tensor, causal: bool) -> Tensor:
        return ops.not_equal(input_mask, 0)
