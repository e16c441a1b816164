"""Tokenizes in several processes, with the results in the order of the input."""

import multiprocessing
import os
import queue
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from keras_bert.core.errors import UserError
from keras_bert.core.runtime import stderr_kept_back

_BATCHES_AHEAD = 2  # Per process: one in progress and one waiting.

Tag = TypeVar("Tag")
Batch = TypeVar("Batch")
Result = TypeVar("Result")


def all_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_processes(
    function: Callable[[Batch], Result], batches: Iterable[tuple[Tag, Batch]], workers: int, remedy: str
) -> Iterator[tuple[Tag, Result]]:
    """Yields `(tag, function(batch))` for each `(tag, batch)`, in order, holding a few batches at a time.

    Processes are spawned, because TensorFlow does not survive a fork. Each exits when its pipe is closed, so that none
    outlives this process, however it dies.

    Args:
        function: a picklable callable, called in the worker processes.
        batches: the tagged batches; they must be picklable too.
        workers: number of processes.
        remedy: what the caller's user can do if memory runs out, as sentences.

    Raises:
        UserError: a process died.
    """
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        free: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        for _ in range(workers):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, function), daemon=True)
            process.start()
            theirs.close()
            stack.callback(process.join)
            stack.callback(ours.close)
            free.put(ours)
        threads = ThreadPoolExecutor(workers)
        stack.callback(threads.shutdown, cancel_futures=True)
        waiting: deque[tuple[Tag, Future[Result]]] = deque()
        for tag, batch in batches:
            waiting.append((tag, threads.submit(_exchange, free, batch, remedy)))
            if len(waiting) >= _BATCHES_AHEAD * workers:
                tag, future = waiting.popleft()
                yield tag, future.result()
        for tag, future in waiting:
            yield tag, future.result()


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


def _exchange(free: queue.SimpleQueue, batch: object, remedy: str) -> Any:
    connection = free.get()
    try:
        connection.send(batch)
        result = connection.recv()
    except (EOFError, OSError):
        raise UserError(
            "Preparing the text: needs its worker processes. Received: one that died, most likely because memory ran "
            f"out. {remedy}"
        ) from None
    finally:
        free.put(connection)
    if isinstance(result, Exception):
        raise result
    return result


def _serve(connection: Connection, function: Callable) -> None:
    """The main function of a worker process: answers batches until the other end closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent stops the workers.
    start_tensorflow()
    while True:
        try:
            batch = connection.recv()
        except (EOFError, OSError):
            return
        try:
            result = function(batch)
        except Exception as error:
            result = error
        try:
            connection.send(result)
        except OSError:
            return
