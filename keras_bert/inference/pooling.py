"""Pools the encoder's hidden states into a vector for each text or each token."""

import keras
from keras import ops

from keras_bert.config.pooling import LAST_LAYERS, check_embedding
from keras_bert.models.encoder import BertEncoder
from keras_bert.models.tensors import Batch, Tensor


class PooledEncoder(keras.Model):
    """An encoder with one of four kinds of pooling.

    - `mean`: the mean of the last layer over all tokens, [CLS] and [SEP] included, padding excluded
      (Reimers and Gurevych 2019, section 3).
    - `cls`: the last layer at [CLS], before the pooler.
    - `last4`: the last four layers concatenated for each token, the last one at the end (paper, section 5.3), then the
      mean over the same tokens as for `mean`.
    - `tokens`: the last layer, not pooled.

    Args:
        encoder: the encoder.
        pooling: one of the above.

    Call arguments: `inputs`, the encoder's inputs.
    Returns: float32 [batch, width]; width is hidden, or 4 * hidden for `last4`. For `tokens`, [batch, seq, hidden].

    Raises:
        UserError: an unknown pooling, or `last4` for an encoder with fewer than four layers.
    """

    def __init__(self, encoder: BertEncoder, pooling: str = "mean") -> None:
        check_embedding(encoder.config, pooling)
        super().__init__()
        self.encoder, self.pooling = encoder, pooling
        self.width = encoder.config.hidden_size * (LAST_LAYERS if pooling == "last4" else 1)
        # XLA would recompile for every sequence length and every batch size.
        self.jit_compile = False

    def call(self, inputs: Batch) -> Tensor:
        outputs = self.encoder(inputs, training=False)
        states = outputs["sequence_output"]
        if self.pooling == "last4":
            states = ops.concatenate(outputs["hidden_states"][-LAST_LAYERS:], axis=-1)
        states = ops.cast(states, "float32")
        if self.pooling == "tokens":
            return states
        if self.pooling == "cls":
            return states[:, 0]
        mask = ops.cast(inputs["input_mask"], "float32")[..., None]
        return ops.sum(states * mask, axis=1) / ops.sum(mask, axis=1)
