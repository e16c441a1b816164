"""Requests merged into batches, by the rules and settings of TensorFlow Serving's `--enable_batching`."""

import collections
import concurrent.futures
import re
import threading
import time

import grpc
import numpy as np
import tensorflow as tf
from served_versions import Refused

# The server's own values.
DEFAULTS = {"max_batch_size": 1000, "batch_timeout_micros": 0, "max_enqueued_batches": 10, "num_batch_threads": 4}

Waiting = collections.namedtuple("Waiting", ["inputs", "rows", "since", "answer"])


def read_settings(path):
    """The settings in a batching.config as `run.py export` writes it; the server's own for those that it lacks."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"#.*", "", file.read())
    found = {name: int(value) for name, value in re.findall(r"(\w+)\s*\{\s*value\s*:\s*(\d+)\s*\}", text)}
    if not found or set(found) - set(DEFAULTS):
        raise SystemExit(f"{path}: needs some of {', '.join(DEFAULTS)}. Received: {', '.join(found) or 'none'}.")
    return {**DEFAULTS, **found}


class RequestBatches:
    """Threads that answer waiting requests of one version, signature and shape together.

    A batch is run when it is full or its first request has waited for `batch_timeout_micros`.
    """

    def __init__(self, settings):
        self._rows, self._most = settings["max_batch_size"], settings["max_enqueued_batches"]
        self._timeout = settings["batch_timeout_micros"] / 1e6
        self._queues = collections.OrderedDict()  # {key: its waiting requests}, the longest waiting first.
        self._changed = threading.Condition()
        for _ in range(settings["num_batch_threads"]):
            threading.Thread(target=self._work, daemon=True).start()

    def predict(self, version, signature, inputs):
        """What `version.predict` answers to these inputs, computed together with those of other requests."""
        shapes = [(name, value.dtype, tuple(value.shape[1:])) for name, value in sorted(inputs.items())]
        numbers = {int(value.shape[0]) if value.shape.rank else 0 for value in inputs.values()}
        if len(numbers) != 1 or 0 in numbers:
            message = "Batching input tensors must have equal 0th-dimension size, at least 1."
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, message)
        (rows,) = numbers
        if rows > self._rows:
            message = f"Task size {rows} is larger than maximum input batch size {self._rows}"
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, message)
        request = Waiting(inputs, rows, time.monotonic(), concurrent.futures.Future())
        with self._changed:
            if sum(request.rows for queue in self._queues.values() for request in queue) >= self._rows * self._most:
                message = "The batch scheduling queue to which this task was submitted is full"
                raise Refused(grpc.StatusCode.UNAVAILABLE, message)
            self._queues.setdefault((version, signature, *shapes), []).append(request)
            self._changed.notify()
        return request.answer.result()

    def _work(self):
        while True:
            (version, signature, *_), requests = self._next()
            try:
                names = requests[0].inputs
                inputs = {name: tf.concat([request.inputs[name] for request in requests], 0) for name in names}
                outputs = version.predict(signature, inputs)
                ends = np.cumsum([request.rows for request in requests])[:-1]
                parts = {name: np.split(values, ends) for name, values in outputs.items()}
            except Exception as error:  # Whatever it is, all of them get it as their answer.
                for request in requests:
                    request.answer.set_exception(error)
                continue
            for number, request in enumerate(requests):
                request.answer.set_result({name: values[number] for name, values in parts.items()})

    def _next(self):
        """(key, requests) of the next batch, which leaves its queue."""
        with self._changed:
            while True:
                now, soonest = time.monotonic(), None
                for key, queue in self._queues.items():
                    due = queue[0].since + self._timeout
                    if due <= now or sum(request.rows for request in queue) >= self._rows:
                        return key, self._taken(key)
                    soonest = due if soonest is None else min(soonest, due)
                self._changed.wait(None if soonest is None else soonest - now)

    def _taken(self, key):
        queue, rows = self._queues.pop(key), 0
        for number, request in enumerate(queue):
            rows += request.rows
            if rows > self._rows:
                # At the end, so that no shape waits for ever behind a busier one.
                self._queues[key] = queue[number:]
                self._changed.notify()
                return queue[:number]
        return queue
