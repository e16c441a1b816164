"""Signatures of an encoder without a head: vectors of texts."""

import tensorflow as tf

from keras_bert.export.network import Network
from keras_bert.export.signature import Signature
from keras_bert.export.text_inputs import TextInputs, token_signature


def encoder_signatures(text_inputs: TextInputs, network: Network) -> dict[str, Signature]:
    """`serving_default` on strings, `tokens` on the encoder's inputs.

    Outputs: `pooled_output` [batch, hidden], `sequence_output` [batch, seq, hidden], and `mean_embedding`
    [batch, hidden], the mean of the sequence output over all tokens; for strings also `input_word_ids` and `input_mask`
    [batch, seq] int32, the tokens of the sequence output.

    Args:
        text_inputs: makes the model's inputs.
        network: the network of a `BertEncoder`, or of a model with an `encoder`.
    """

    def encode(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        outputs = network.encode(inputs)
        mask = tf.expand_dims(tf.cast(inputs["input_mask"], tf.float32), -1)
        # A row of nothing but padding, which only `tokens` can receive, has the mean 0.
        mean = tf.reduce_sum(outputs["sequence_output"] * mask, axis=1) / tf.maximum(tf.reduce_sum(mask, axis=1), 1.0)
        return {**outputs, "mean_embedding": mean}

    def encode_texts(texts: tf.Tensor) -> dict[str, tf.Tensor]:
        inputs = text_inputs.from_texts(texts)
        tokens = {name: inputs[name] for name in ("input_word_ids", "input_mask")}
        return {**encode(inputs), **tokens}

    return {
        "serving_default": Signature(encode_texts, (tf.TensorSpec([None], tf.string, name="text"),)),
        "tokens": token_signature(text_inputs, encode),
    }
