"""The hidden states of an encoder, in one traced function for batches of any shape."""

from collections.abc import Callable

import tensorflow as tf

from keras_bert.models.encoder import BertEncoder


def hidden_states(encoder: BertEncoder, layer: int | None = None) -> Callable[[dict[str, tf.Tensor]], tf.Tensor]:
    """A function (the encoder's inputs, each [batch, seq] int32) -> states, with the weights as they are then.

    Args:
        encoder: the encoder.
        layer: whose states are returned, float32 [batch, seq, hidden], 0 for the embeddings; None for all of them,
            [layers + 1, batch, seq, hidden].
    """
    spec = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[dict.fromkeys(("input_word_ids", "input_mask", "input_type_ids"), spec)])
    def states(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        found = encoder(inputs)["hidden_states"]
        return tf.stack(found) if layer is None else found[layer]

    return states
