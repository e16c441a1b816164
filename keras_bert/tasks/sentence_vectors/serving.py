"""Signatures of a model whose vectors are compared by their cosine."""

import tensorflow as tf

from keras_bert.export.network import Network
from keras_bert.export.signature import Signature, TextInputs, signatures_of_texts_and_tokens
from keras_bert.layers.pooling import mean_vectors

VECTORS = "vectors"


def sentence_vector_signatures(text_inputs: TextInputs, network: Network) -> dict[str, Signature]:
    """`serving_default` on strings, `tokens` on the encoder's inputs.

    Outputs: `vectors` float32 [batch, hidden], of length 1, so that the dot product of two is their cosine.
    """

    def answer(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {VECTORS: mean_vectors(network.encode(inputs)["sequence_output"], inputs["input_mask"])}

    def answer_texts(texts: tf.Tensor) -> dict[str, tf.Tensor]:
        inputs, _ = text_inputs.from_columns(texts)  # A row for each text: windows are refused in training.
        return answer(inputs)

    return signatures_of_texts_and_tokens(text_inputs, answer_texts, answer)
