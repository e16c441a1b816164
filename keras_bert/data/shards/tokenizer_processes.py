"""Tokenizes in several processes, with the results in the order of the input."""

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from typing import Any, TypeVar

from keras_bert.core.errors import UserError
from keras_bert.core.runtime import stderr_kept_back

_BATCHES_AHEAD = 2  # Per process: one in progress and one waiting.

Tag = TypeVar("Tag")
Batch = TypeVar("Batch")
Result = TypeVar("Result")

_function: Callable[[Any], Any]  # In a worker process.


def all_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_processes(
    function: Callable[[Batch], Result], batches: Iterable[tuple[Tag, Batch]], workers: int, remedy: str
) -> Iterator[tuple[Tag, Result]]:
    """Yields `(tag, function(batch))` for each `(tag, batch)`, in order, holding a few batches at a time.

    Processes are spawned, because TensorFlow does not survive a fork.

    Args:
        function: a picklable callable, sent once to each process.
        batches: the tagged batches; they must be picklable too.
        workers: number of processes.
        remedy: what the caller's user can do if memory runs out, as sentences.

    Raises:
        UserError: a process died.
    """
    spawn = multiprocessing.get_context("spawn")
    processes = ProcessPoolExecutor(workers, spawn, _start_worker, (function,))
    waiting: deque[tuple[Tag, Future[Result]]] = deque()
    try:
        for tag, batch in batches:
            waiting.append((tag, processes.submit(_call, batch)))
            if len(waiting) >= _BATCHES_AHEAD * workers:
                tag, future = waiting.popleft()
                yield tag, future.result()
        for tag, future in waiting:
            yield tag, future.result()
    except BrokenProcessPool:
        raise UserError(
            "Preparing the text: needs its worker processes. Received: one that died, most likely because memory ran "
            f"out. {remedy}"
        ) from None
    finally:
        processes.shutdown(cancel_futures=True)


def start_tensorflow() -> None:
    """Imports TensorFlow into a worker process, which leaves other cores to other workers and takes no GPU.

    Nothing happens in a process that has imported it already.
    """
    if "tensorflow" in sys.modules:
        return
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    with stderr_kept_back():
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        tf.config.list_logical_devices()


def _start_worker(function: Callable[[Any], Any]) -> None:
    global _function
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent stops the workers.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    start_tensorflow()
    _function = function


def _end_with_parent() -> None:
    """Ends this process when its parent has ended, however it died; the pool would leave it waiting for work."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def _call(batch: Any) -> Any:
    return _function(batch)
