"""Integers of batches that lie on a GPU before a step needs them.

TensorFlow keeps int32 arguments of functions in the host's memory, and a copy to a GPU waits for all its pending work.
A step with such arguments would only be launched once the step before it has ended, and the GPU would idle until then.
int64 arguments lie on the device.
"""

import tensorflow as tf

from keras_bert.training.strategy import distribute, on_gpus


def distribute_to_steps(
    strategy: tf.distribute.Strategy, dataset: tf.data.Dataset
) -> tf.distribute.DistributedDataset | tf.data.Dataset:
    """`distribute`, but with int64 instead of int32 for GPUs; a `Step` computes with int32 again."""
    return distribute(strategy, dataset.map(widened) if on_gpus(strategy) else dataset)


def widened(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """The batch with int64 instead of int32."""
    return _cast(batch, tf.int32, tf.int64)


def narrowed(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """The batch with int32 instead of int64."""
    return _cast(batch, tf.int64, tf.int32)


def _cast(batch: dict[str, tf.Tensor], old: tf.DType, new: tf.DType) -> dict[str, tf.Tensor]:
    return {name: tf.cast(value, new) if value.dtype == old else value for name, value in batch.items()}
