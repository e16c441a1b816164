"""The moving average of the weights, which stands in for them while a run validates and exports."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import tensorflow as tf

if TYPE_CHECKING:
    import keras

    from keras_bert.training.optimizers.base import BertOptimizer


def start_average(model: keras.Model, optimizer: BertOptimizer) -> None:
    """Sets the averages to the weights, once these have their initial values."""
    for variable, average in _pairs(model, optimizer):
        average.assign(variable)


@contextlib.contextmanager
def averaged_weights(model: keras.Model, optimizer: BertOptimizer) -> Iterator[None]:
    """A block in which the model's weights are their averages; without averages it changes nothing.

    Weights and averages are exchanged and then exchanged back, bit for bit. A checkpoint must not be saved inside.
    """
    _exchange(model, optimizer)
    try:
        yield
    finally:
        _exchange(model, optimizer)


def _exchange(model: keras.Model, optimizer: BertOptimizer) -> None:
    for variable, average in _pairs(model, optimizer):
        value = tf.identity(variable.value)
        variable.assign(average)
        average.assign(value)


def _pairs(model: keras.Model, optimizer: BertOptimizer) -> Iterator[tuple[keras.Variable, keras.Variable]]:
    if optimizer.averages:
        yield from zip(model.trainable_variables, optimizer.averages, strict=True)
