"""The message of a worker whose run has lost another worker."""

import contextlib
from collections.abc import Iterator

import tensorflow as tf

from keras_bert.errors import WorkerLost
from keras_bert.program import same_command
from keras_bert.training.cluster import worker_addresses
from keras_bert.training.stop_request import STOPPED_BY_SIGNAL

# A collective op, such as the sum of the gradients, ends with one of these when a peer is killed or unreachable.
_ERRORS = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError)
_SIGN = "Collective ops is aborted by: "


@contextlib.contextmanager
def explained_lost_worker() -> Iterator[None]:
    """Turns the error of a collective op whose peer is gone into a `WorkerLost`, which asks for a restart.

    For the whole of a run: a peer may be gone at any of the collectives from its start-up to its results.
    """
    try:
        yield
    except _ERRORS as error:
        if len(worker_addresses()) < 2 or _SIGN not in error.message:
            raise
        reason = error.message.split(_SIGN, 1)[1].strip().splitlines()[0]
        raise WorkerLost(
            f"Another worker of this run is gone ({reason}). Start all workers again with {same_command()}; they "
            "resume from the newest checkpoint.",
            STOPPED_BY_SIGNAL,
        ) from None
