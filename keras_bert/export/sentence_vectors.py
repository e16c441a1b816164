"""Signatures of a model whose vectors are compared by their cosine."""

import tensorflow as tf

from keras_bert.export.network import Network
from keras_bert.export.signature import Signature
from keras_bert.export.text_inputs import TextInputs, token_signature

VECTORS = "vectors"


def sentence_vector_signatures(text_inputs: TextInputs, network: Network) -> dict[str, Signature]:
    """`serving_default` on strings, `tokens` on the encoder's inputs.

    Outputs: `vectors` float32 [batch, hidden], of length 1, so that the dot product of two is their cosine.

    Args:
        text_inputs: makes the model's inputs.
        network: the network of a `BertForSentenceVectors`.
    """

    def answer(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        states = network.encode(inputs)["sequence_output"]
        mask = tf.expand_dims(tf.cast(inputs["input_mask"], tf.float32), -1)
        mean = tf.reduce_sum(states * mask, axis=1) / tf.maximum(tf.reduce_sum(mask, axis=1), 1.0)
        return {VECTORS: mean / tf.maximum(tf.sqrt(tf.reduce_sum(mean * mean, axis=-1, keepdims=True)), 1e-9)}

    return {
        "serving_default": Signature(
            lambda texts: answer(text_inputs.from_texts(texts)), (tf.TensorSpec([None], tf.string, name="text"),)
        ),
        "tokens": token_signature(text_inputs, answer),
    }
