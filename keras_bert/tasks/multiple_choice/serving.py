"""Signatures of a model that picks one of several choices."""

import tensorflow as tf

from keras_bert.export.network import Network
from keras_bert.export.signature import TOKENS, Signature, TextInputs, without_invalid
from keras_bert.inputs.rows import filled

CHOICES = "choices"
_CHOICE_TOKENS = tuple(tf.TensorSpec([None, None, None], spec.dtype, name=spec.name) for spec in TOKENS)


def multiple_choice_signatures(text_inputs: TextInputs, network: Network) -> dict[str, Signature]:
    """`serving_default` on strings, `tokens` on the encoder's inputs, [batch, choices, seq] each.

    Inputs of `serving_default`: `context` [batch]; `question` [batch], the beginning of every choice, or ""; `choices`
    [batch, choices], padded with "" at the end of a row. In `tokens`, a choice that is all padding does not count.

    Outputs: `choice` int32 [batch], the index of the best choice, 0 if there is none; `probabilities` and `logits`
    float32 [batch, choices], 0 for padding.
    """

    def logits_of(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        pooled = network.pooled(inputs)
        return network.run(lambda model: model.classifier(pooled))[:, 0]

    def outputs(logits: tf.Tensor, is_there: tf.Tensor) -> dict[str, tf.Tensor]:
        masked = tf.where(is_there, logits, logits.dtype.min)
        # An extra column, never chosen, for requests without choices: argmax needs at least one.
        at_least_one = tf.pad(masked, [[0, 0], [0, 1]], constant_values=logits.dtype.min)
        return {
            "choice": tf.argmax(at_least_one, axis=1, output_type=tf.int32),
            "probabilities": tf.where(is_there, tf.nn.softmax(masked), 0.0),
            "logits": tf.where(is_there, logits, 0.0),
        }

    def answer_texts(contexts: tf.Tensor, questions: tf.Tensor, choices: tf.Tensor) -> dict[str, tf.Tensor]:
        is_there, _ = filled(choices)
        place = tf.where(is_there)
        beginnings = tf.gather(tf.where(tf.equal(questions, ""), "", questions + " "), place[:, 0])
        continued = beginnings + tf.boolean_mask(choices, is_there)
        inputs, _ = text_inputs.from_columns(tf.gather(contexts, place[:, 0]), continued)
        return outputs(tf.scatter_nd(place, logits_of(inputs), tf.shape(choices, tf.int64)), is_there)

    def answer_tokens(*tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        shape = tf.shape(tokens[0])[:2]
        inputs, is_valid = text_inputs.from_tokens(*map(text_inputs.as_rows, tokens))
        is_there = tf.reduce_any(tf.not_equal(tokens[1], 0), axis=2)
        answers = outputs(tf.reshape(logits_of(inputs), shape), is_there)
        return without_invalid(answers, tf.reduce_all(tf.reshape(is_valid, shape), axis=1))

    texts = (
        tf.TensorSpec([None], tf.string, name="context"),
        tf.TensorSpec([None], tf.string, name="question"),
        tf.TensorSpec([None, None], tf.string, name=CHOICES),
    )
    return {
        "serving_default": Signature(
            answer_texts, texts, {CHOICES: lambda word, length: [" ".join([word] * max(1, length - 2))] * 2}
        ),
        "tokens": Signature(answer_tokens, _CHOICE_TOKENS),
    }
