"""When a batch does not fit in memory: what to try instead."""

import contextlib

import tensorflow as tf

from keras_bert.errors import UserError

_SIGNS = ("RESOURCE_EXHAUSTED", "OOM when allocating", "Out of memory", "out of memory")


@contextlib.contextmanager
def explained_out_of_memory(batch, strategy, accumulation):
    """Turns an out-of-memory error of TensorFlow or XLA into a `UserError` with the settings to try.

    Args:
        batch: function () -> (key of the batch size in the recipe, the batch size) at the time of the error.
        strategy: the `tf.distribute.Strategy`.
        accumulation: the recipe's.
    """
    try:
        yield
    except (tf.errors.OpError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        key, batch_size = batch()
        raise UserError(
            f"Out of memory with {key} {batch_size} on {strategy.num_replicas_in_sync} replica(s) and "
            f"training.accumulation {accumulation}. {advice(batch_size, strategy.num_replicas_in_sync, accumulation)}"
        ) from error


def is_out_of_memory(error):
    """Whether an error means that memory ran out; XLA reports it under other classes than TensorFlow does."""
    if isinstance(error, (MemoryError, tf.errors.ResourceExhaustedError)):
        return True
    return any(sign in str(error) for sign in _SIGNS)


def advice(batch_size, replicas, accumulation):
    """One sentence: the next accumulation that divides a replica's part, and the batch that needs half the memory."""
    part = batch_size // replicas
    slices = next((n for n in range(accumulation + 1, part + 1) if part % n == 0 and n >= 2 * accumulation), None)
    if slices is None:
        return "Already one example at a time: take a shorter sequence_length, a smaller model or a larger device."
    half = max(batch_size // (2 * replicas * accumulation), 1) * replicas * accumulation
    smaller = f", or a batch size of {half}" if half < batch_size else ""
    return f"Try training.accumulation={slices} (the same numbers in more slices){smaller}."
