"""Signatures of a classifier of texts or pairs of texts: classes, several labels, or a number."""

import tensorflow as tf

from keras_bert.config.classification import MULTI_LABEL, REGRESSION
from keras_bert.export.reader import token_signature
from keras_bert.export.signature import Signature


def classification_signatures(classification, reader, network, logits_of=None):
    """`{name: Signature}`: `serving_default` on strings, `tokens` on the encoder's inputs.

    Outputs, of every row: `score` [batch] of a regression; else `labels` [batch, labels] string, in the order of
    `probabilities` and `logits` [batch, labels] float32; where labels exclude each other `label` [batch], the most
    probable one.

    Args:
        classification: a `ClassificationConfig`.
        reader: the model's `Reader`.
        network: the `Network` of a `BertForSequenceClassification`, or of another model with `logits_of`.
        logits_of: function (the encoder's inputs) -> logits [batch, labels].
    """
    logits_of = logits_of or (lambda inputs: _logits(network, inputs))
    labels = tf.constant([list(classification.labels)])

    def answer(inputs, texts=None):
        logits = logits_of(inputs)
        if texts is not None:
            logits = tf.math.segment_mean(logits, texts)
        if classification.problem_type == REGRESSION:
            return {"score": logits[:, 0]}
        outputs = {"labels": tf.tile(labels, [tf.shape(logits)[0], 1]), "logits": logits}
        if classification.problem_type == MULTI_LABEL:
            return {**outputs, "probabilities": tf.sigmoid(logits)}
        best = tf.gather(labels[0], tf.argmax(logits, axis=-1))
        return {**outputs, "probabilities": tf.nn.softmax(logits), "label": best}

    names = ("text_a", "text_b") if reader.reading.pair else ("text",)
    texts = tuple(tf.TensorSpec([None], tf.string, name=name) for name in names)
    return {
        "serving_default": Signature(lambda *texts: answer(*reader.rows(*texts)), texts),
        "tokens": token_signature(reader, answer),
    }


def _logits(network, inputs):
    pooled = network.encode(inputs)["pooled_output"]
    return network.run(lambda model: model.classifier(pooled))
