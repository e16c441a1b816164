"""Which devices a run trains on."""

import tensorflow as tf

from keras_bert.errors import UserError


def make_strategy(name):
    """The `tf.distribute.Strategy` for `one` device or `mirrored` over all GPUs of this machine.

    Without a GPU, `mirrored` takes the machine's logical CPU devices, so that it can be tried anywhere.
    """
    if name == "one":
        return tf.distribute.get_strategy()
    if name == "mirrored":
        kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
        count = len(tf.config.list_logical_devices(kind))
        return tf.distribute.MirroredStrategy([f"{kind}:{index}" for index in range(count)])
    raise ValueError(f"strategy needs one or mirrored. Received: {name!r}.")


def check_divisible(batch_size, strategy, accumulation, key):
    """Every replica, and every slice of its part, must get the same number of examples."""
    parts = strategy.num_replicas_in_sync * accumulation
    if batch_size % parts:
        raise UserError(
            f"{key}: needs a multiple of {parts} (replicas {strategy.num_replicas_in_sync} x training.accumulation "
            f"{accumulation}). Received: {batch_size}. The nearest are {batch_size // parts * parts or parts} and "
            f"{-(-batch_size // parts) * parts}."
        )
