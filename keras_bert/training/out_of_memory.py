"""What to try when a batch does not fit in memory."""

import contextlib
from collections.abc import Callable, Iterator

import tensorflow as tf

from keras_bert.errors import UserError

_SIGNS = ("RESOURCE_EXHAUSTED", "OOM when allocating", "Out of memory", "out of memory")


@contextlib.contextmanager
def explained_out_of_memory(
    batch: Callable[[], tuple[str, int]], strategy: tf.distribute.Strategy, accumulation: int
) -> Iterator[None]:
    """Turns an out-of-memory error of TensorFlow or XLA into a `UserError` with the settings to try.

    Args:
        batch: function () -> (key of the batch size in the recipe, batch size) at the time of the error.
        strategy: the run's strategy.
        accumulation: the recipe's `training.accumulation`.
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


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out; XLA raises other classes for it than TensorFlow does."""
    if isinstance(error, (MemoryError, tf.errors.ResourceExhaustedError)):
        return True
    return any(sign in str(error) for sign in _SIGNS)


def advice(batch_size: int, replicas: int, accumulation: int) -> str:
    """One sentence: a larger accumulation that divides a replica's part, and the batch size that halves the memory."""
    part = batch_size // replicas
    slices = next((n for n in range(accumulation + 1, part + 1) if part % n == 0 and n >= 2 * accumulation), None)
    if slices is None:
        return "Already one example at a time: use a shorter sequence_length, a smaller model or a larger device."
    half = max(batch_size // (2 * replicas * accumulation), 1) * replicas * accumulation
    smaller = f", or a batch size of {half}" if half < batch_size else ""
    return f"Try training.accumulation={slices} (the same results in more slices){smaller}."
