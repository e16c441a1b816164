"""From the encoder's states to one vector a text, or one a token."""

import keras
from keras import ops

from keras_bert.config.pooling import LAST_LAYERS, check_embedding


class PooledEncoder(keras.Model):
    """An encoder and what is taken from it.

    - `mean`: the mean of the last layer's states of all tokens, [CLS] and [SEP] included, padding not
      (Reimers and Gurevych 2019, section 3).
    - `cls`: the last layer's state of [CLS], before the pooler.
    - `last4`: each token's states of the last four layers, the last one at the end, concatenated (paper, section 5.3),
      then their mean over the same tokens as in `mean`.
    - `tokens`: the last layer's states, as they are.

    Args:
        encoder: a `BertEncoder`.
        pooling: one of the above.

    Call arguments: `inputs`, the encoder's dict.
    Returns: float32 [batch, width], width being hidden, or 4 * hidden for `last4`; for `tokens` [batch, seq, hidden].

    Raises:
        UserError: no such pooling, or `last4` of an encoder with fewer layers.
    """

    def __init__(self, encoder, pooling="mean"):
        check_embedding(encoder.config, pooling)
        super().__init__()
        self.encoder, self.pooling = encoder, pooling
        self.width = encoder.config.hidden_size * (LAST_LAYERS if pooling == "last4" else 1)
        # XLA would compile anew for every length and every number of texts.
        self.jit_compile = False

    def call(self, inputs):
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
