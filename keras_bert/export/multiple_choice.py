"""Signatures of a model that picks one of several choices."""

import tensorflow as tf

from keras_bert.export.reader import TOKENS, filled, without_invalid
from keras_bert.export.signature import Signature

CHOICES = "choices"
_OF_CHOICES = tuple(tf.TensorSpec([None, None, None], spec.dtype, name=spec.name) for spec in TOKENS)


def multiple_choice_signatures(reader, network):
    """`{name: Signature}`: `serving_default` on strings, `tokens` on the encoder's inputs, [batch, choices, seq] each.

    Inputs of `serving_default`: `context` [batch]; `question` [batch], with what every choice begins, "" for nothing;
    `choices` [batch, choices], "" behind a row's last. In `tokens` a choice that is padding alone is not there.

    Outputs: `choice` int32 [batch], the place of the best one, 0 where there is none; `probabilities` and `logits`
    float32 [batch, choices], 0 for a choice that is not there.

    Args:
        reader: the model's `Reader`.
        network: the `Network` of a `BertForMultipleChoice`.
    """

    def logits_of(inputs):
        pooled = network.encode(inputs)["pooled_output"]
        return network.run(lambda model: model.classifier(pooled))[:, 0]

    def outputs(logits, is_there):
        masked = tf.where(is_there, logits, logits.dtype.min)
        # One column more, which is never chosen, for a request without any: there is no argmax of nothing.
        at_least_one = tf.pad(masked, [[0, 0], [0, 1]], constant_values=logits.dtype.min)
        return {
            "choice": tf.argmax(at_least_one, axis=1, output_type=tf.int32),
            "probabilities": tf.where(is_there, tf.nn.softmax(masked), 0.0),
            "logits": tf.where(is_there, logits, 0.0),
        }

    def of_texts(contexts, questions, choices):
        is_there, _ = filled(choices)
        place = tf.where(is_there)
        beginnings = tf.gather(tf.where(tf.equal(questions, ""), "", questions + " "), place[:, 0])
        inputs, _ = reader.rows(tf.gather(contexts, place[:, 0]), beginnings + tf.boolean_mask(choices, is_there))
        return outputs(tf.scatter_nd(place, logits_of(inputs), tf.shape(choices, tf.int64)), is_there)

    def of_tokens(*tokens):
        shape, seq = tf.shape(tokens[0])[:2], tf.shape(tokens[0])[2]
        # Not -1 for the rows, which nothing tells where there are no tokens.
        inputs, is_valid = reader.tokens(*(tf.reshape(t, [shape[0] * shape[1], seq]) for t in tokens))
        is_there = tf.reduce_any(tf.not_equal(tokens[1], 0), axis=2)
        answers = outputs(tf.reshape(logits_of(inputs), shape), is_there)
        return without_invalid(answers, tf.reduce_all(tf.reshape(is_valid, shape), axis=1))

    texts = (
        tf.TensorSpec([None], tf.string, name="context"),
        tf.TensorSpec([None], tf.string, name="question"),
        tf.TensorSpec([None, None], tf.string, name=CHOICES),
    )
    return {"serving_default": Signature(of_texts, texts), "tokens": Signature(of_tokens, _OF_CHOICES)}
