"""The versions in a model's folder, as a server handles them: the highest one answers, and a new one takes over."""

import gc
import os
import threading
import time

import grpc
import tensorflow as tf
import tensorflow_text  # noqa: F401  Registers the tokenizer's ops.
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import prediction_log_pb2

GRAPH = "saved_model.pb"
WARM_UP = os.path.join("assets.extra", "tf_serving_warmup_requests")


class Refused(Exception):
    """A request that cannot be answered: a gRPC status and why."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Version:
    """A loaded version, which has answered its warm-up requests."""

    def __init__(self, folder, number):
        self.number = number
        path = os.path.join(folder, str(number))
        self._loaded = tf.saved_model.load(path)
        with open(os.path.join(path, GRAPH), "rb") as file:
            self.signature_defs = saved_model_pb2.SavedModel.FromString(file.read()).meta_graphs[0].signature_def
        warm_up = os.path.join(path, WARM_UP)
        for record in tf.data.TFRecordDataset(warm_up if os.path.exists(warm_up) else []).as_numpy_iterator():
            request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
            inputs = {name: tf.constant(tf.make_ndarray(value)) for name, value in request.inputs.items()}
            self.predict(request.model_spec.signature_name or "serving_default", inputs)

    def signature(self, name):
        """The SignatureDef; the initialization's, which the loader keeps beside the others, does not count."""
        if name not in self._loaded.signatures:
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, f'Serving signature key "{name}" not found.')
        return self.signature_defs[name]

    def predict(self, signature, inputs):
        """`{output: array}` for `{input: tensor}`."""
        wanted = set(self.signature(signature).inputs)
        if set(inputs) != wanted:
            message = f"input must be {sorted(wanted)}. Received: {sorted(inputs)}."
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, message)
        try:
            outputs = self._loaded.signatures[signature](**inputs)
        except (tf.errors.OpError, TypeError, ValueError) as error:
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from None
        return {name: output.numpy() for name, output in outputs.items()}


class ServedModel:
    """The highest version in a folder.

    Attributes:
        name: the model's name, by default the folder's.
        version: the `Version` that answers. A request keeps the one it began with; the next one is loaded beside it.
    """

    def __init__(self, folder, name=None):
        self.name = name or os.path.basename(os.path.abspath(folder))
        self._folder = folder
        highest = self._highest()
        if highest is None:
            raise SystemExit(f"{folder}: needs a version, such as 1/{GRAPH}. Write one with run.py export.")
        self.version = Version(folder, highest)

    def require(self, name, number=None):
        """The version that answers; raises `Refused` unless it is the one asked for."""
        version = self.version
        if name != self.name or number not in (None, version.number):
            versioned = "" if number is None else f" version {number}"
            raise Refused(grpc.StatusCode.NOT_FOUND, f"Servable not found for request: {name}{versioned}")
        return version

    def watch(self, seconds):
        """Looks for a new highest version every `seconds`, in a thread of its own."""
        threading.Thread(target=self._follow, args=(seconds,), daemon=True).start()

    def _highest(self):
        held = os.listdir(self._folder) if os.path.isdir(self._folder) else []
        entries = [entry for entry in held if entry.isdecimal()]
        return max((int(entry) for entry in entries if os.path.exists(self._path(entry, GRAPH))), default=None)

    def _path(self, *parts):
        return os.path.join(self._folder, *parts)

    def _follow(self, seconds):
        refused = None
        while True:
            time.sleep(seconds)
            try:
                number = self._highest()
                if number in (None, self.version.number):
                    continue
                self.version = Version(self._folder, number)
            except Exception as error:  # A version may be half copied; the server goes on.
                if str(error) != refused:
                    print(f"{self.name} version {self.version.number} stays: {error}", flush=True)
                refused = str(error)
                continue
            gc.collect()  # A loaded model refers to itself, so the old one would stay in memory for a while.
            print(f"{self.name} version {self.version.number} answers now", flush=True)
