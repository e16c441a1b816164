"""Tokenising in several processes, the results in the order of the input."""

import multiprocessing
import os
import queue
import signal
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from keras_bert.errors import UserError
from keras_bert.quiet import stderr_kept_back

_BATCHES_AHEAD = 2  # Of each process: one is in work while the next waits.


def all_cores():
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_processes(function, batches, workers):
    """Yields `(tag, function(batch))` for each `(tag, batch)`, in order; a few batches are held at a time.

    Processes are spawned, because TensorFlow does not survive a fork. Each ends when its pipe does, so that none
    outlives this process, however it dies.

    Args:
        function: what can be pickled and called with a batch; called in `workers` processes.
        batches: iterable of `(tag, batch)`.
        workers: number of processes.

    Raises:
        UserError: a process died.
    """
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        free = queue.SimpleQueue()
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
        waiting = deque()
        for tag, batch in batches:
            waiting.append((tag, threads.submit(_exchange, free, batch)))
            if len(waiting) >= _BATCHES_AHEAD * workers:
                tag, future = waiting.popleft()
                yield tag, future.result()
        for tag, future in waiting:
            yield tag, future.result()


def _exchange(free, batch):
    connection = free.get()
    try:
        connection.send(batch)
        result = connection.recv()
    except (EOFError, OSError):
        raise UserError(
            "prepare: needs its worker processes. Received: one that died, most likely for lack of memory. "
            "Give fewer --workers; the same command goes on where it stopped."
        ) from None
    finally:
        free.put(connection)
    if isinstance(result, Exception):
        raise result
    return result


def _serve(connection, function):
    """What a worker process does: answers batches until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent ends the work.
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    with stderr_kept_back():
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        tf.config.list_logical_devices()
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
