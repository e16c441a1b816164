"""The gradient's norm for each part of a model: embeddings, each block, pooler, each head."""

from collections.abc import Mapping, Sequence

import keras
import tensorflow as tf

from keras_bert.training.variable_names import part_of, trainable_names


def gradient_parts(model: keras.Model) -> dict[str, list[int]]:
    """`{part: the numbers of its variables in model.trainable_variables}`."""
    parts: dict[str, list[int]] = {}
    for number, name in enumerate(trainable_names(model)):
        parts.setdefault(part_of(name), []).append(number)
    return parts


def gradient_norms(gradients: Sequence[tf.Tensor], parts: Mapping[str, Sequence[int]]) -> dict[str, tf.Tensor]:
    """`{part: float32 scalar}`; their squares sum to the square of the global norm."""
    return {part: tf.linalg.global_norm([gradients[number] for number in numbers]) for part, numbers in parts.items()}
