"""Signatures of a model for single-label or multi-label classification, or regression, of texts or pairs of texts."""

from collections.abc import Callable

import tensorflow as tf

from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION
from keras_bert.export.network import Network
from keras_bert.export.signature import Signature, TextInputs, signatures_of_texts_and_tokens
from keras_bert.tasks.classification.head import ClassificationConfig


def classification_signatures(
    classification: ClassificationConfig,
    text_inputs: TextInputs,
    network: Network,
    logits_of: Callable[[dict[str, tf.Tensor]], tf.Tensor],
) -> dict[str, Signature]:
    """`serving_default` on strings, `tokens` on the encoder's inputs.

    Outputs for each row: `score` [batch] float32 for a regression; otherwise `labels` [batch, labels] string, in the
    order of `probabilities` and `logits` [batch, labels] float32, and for a single-label task `label` [batch] string,
    the most probable one.

    Args:
        classification: the labels and the kind of the task.
        logits_of: function (the encoder's inputs) -> float32 [batch, labels], the logits in the network.
    """

    def answer(inputs: dict[str, tf.Tensor], texts: tf.Tensor | None = None) -> dict[str, tf.Tensor]:
        if texts is None:
            return class_outputs(classification, logits_of(inputs))
        logits = tf.math.segment_mean(network.by_parts(logits_of, inputs), texts)
        return class_outputs(classification, logits)

    columns = ("text_a", "text_b") if text_inputs.reading.pair else ("text",)
    return signatures_of_texts_and_tokens(
        text_inputs, lambda *texts: answer(*text_inputs.from_columns(*texts)), answer, columns
    )


def class_outputs(classification: ClassificationConfig, logits: tf.Tensor) -> dict[str, tf.Tensor]:
    """The outputs of `classification_signatures` for logits [batch, labels]."""
    if classification.problem_type == REGRESSION:
        score = logits[:, 0]
        return {"score": tf.sigmoid(score) if classification.logistic else score}
    labels = tf.constant([list(classification.labels)])
    outputs = {"labels": tf.tile(labels, [tf.shape(logits)[0], 1]), "logits": logits}
    if classification.problem_type == MULTI_LABEL:
        return {**outputs, "probabilities": tf.sigmoid(logits)}
    best = tf.gather(labels[0], tf.argmax(logits, axis=-1))
    return {**outputs, "probabilities": tf.nn.softmax(logits), "label": best}
