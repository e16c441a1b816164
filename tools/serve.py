"""A model's folder behind Predict and REST, for development and tests only: one process, no security.

    pip install -r requirements/dev.txt
    python tools/serve.py served/sst2 [--port 8500] [--rest-port 8501] [--batching served/sst2/batching.config]

It gives TensorFlow Serving's answers to the same requests (PredictionService.Predict and GetModelMetadata;
GET /v1/models/NAME[/metadata], POST /v1/models/NAME[/versions/V]:predict), so that a client can be written without the
server's binary. The highest version in the folder answers, even if it is added later. It uses nothing of keras_bert.
"""

import argparse
import base64
import http.server
import json
import math
import os
import re
import sys
from concurrent import futures

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from request_batches import RequestBatches, read_settings
from served_versions import Refused, ServedModel
from tensorflow_serving.apis import get_model_metadata_pb2, predict_pb2, prediction_service_pb2_grpc

SIGNATURE_DEF = "signature_def"
MOST_VALUES = 2**20
STATUSES = {grpc.StatusCode.NOT_FOUND: 404, grpc.StatusCode.UNAVAILABLE: 503}
_NAME = r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>\d{1,18}))?"
PREDICT_PATH = re.compile(rf"{_NAME}:predict")
MODEL_PATH = re.compile(rf"{_NAME}(?P<metadata>/metadata)?")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", help="a model's folder, which holds its versions")
    parser.add_argument("--name", help="the model's name; by default the folder's")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8500, help="of gRPC; 0 takes a free one")
    parser.add_argument("--rest-port", type=int, default=8501)
    parser.add_argument("--batching", metavar="FILE", help="merge waiting requests, with the settings of this file")
    parser.add_argument("--threads", type=int, default=32, help="gRPC requests at a time")
    parser.add_argument("--intra-op-threads", type=int, default=0, help="that one op may use; 0: all cores")
    parser.add_argument("--poll", type=float, default=1.0, help="seconds between two looks for a new version")
    arguments = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(arguments.intra_op_threads)
    model = Answers(arguments.folder, arguments.name, arguments.batching)
    server = grpc.server(futures.ThreadPoolExecutor(arguments.threads))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(PredictionService(model), server)
    port, rest = bound(server, model, arguments.host, arguments.port, arguments.rest_port)
    server.start()
    print(f"{model.name} version {model.version.number}: gRPC {port}, REST {rest.server_address[1]}", flush=True)
    model.watch(arguments.poll)
    rest.serve_forever()


def bound(server, model, host, port, rest_port):
    """`(gRPC's port, the REST server)`; exits in one line if a port is taken."""
    try:
        rest = http.server.ThreadingHTTPServer((host, rest_port), type("", (Rest,), {"model": model}))
        return server.add_insecure_port(f"{host}:{port}"), rest
    except (OSError, RuntimeError) as error:  # RuntimeError is gRPC's.
        sys.exit(f"Error: --port {port}, --rest-port {rest_port}: needs free ports of {host} ({error}). Give others.")


class Answers(ServedModel):
    """A served model, whose requests may be merged."""

    def __init__(self, folder, name, batching):
        super().__init__(folder, name)
        self._batches = RequestBatches(read_settings(batching)) if batching else None

    def predict(self, version, signature, inputs):
        """`{output: array}` for `{input: tensor}`, by a version."""
        version.signature(signature)
        if self._batches:
            return self._batches.predict(version, signature, inputs)
        return version.predict(signature, inputs)


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """gRPC."""

    def __init__(self, model):
        self._model = model

    def Predict(self, request, context):
        try:
            version, name = self._required(request), request.model_spec.signature_name or "serving_default"
            inputs = {key: from_proto(key, value) for key, value in request.inputs.items()}
            outputs = self._model.predict(version, name, inputs)
        except Refused as refused:
            context.abort(refused.status, str(refused))
        kept = request.output_filter or outputs
        response = predict_pb2.PredictResponse()
        self._describe(response.model_spec, version, name)
        for key in kept:
            if key not in outputs:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"output tensor alias not found in signature: {key}")
            response.outputs[key].CopyFrom(tf.make_tensor_proto(outputs[key]))
        return response

    def GetModelMetadata(self, request, context):
        try:
            version = self._required(request)
            if list(request.metadata_field) != [SIGNATURE_DEF]:
                raise Refused(grpc.StatusCode.INVALID_ARGUMENT, f"Metadata field needs {SIGNATURE_DEF}.")
        except Refused as refused:
            context.abort(refused.status, str(refused))
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        self._describe(response.model_spec, version)
        response.metadata[SIGNATURE_DEF].Pack(signature_def_map(version))
        return response

    def _required(self, request):
        """The version that is asked for."""
        spec = request.model_spec
        return self._model.require(spec.name, spec.version.value if spec.HasField("version") else None)

    def _describe(self, spec, version, signature=""):
        spec.name, spec.signature_name = self._model.name, signature
        spec.version.value = version.number


def from_proto(name, proto):
    """The tensor of a request; refuses one that cannot be read."""
    sizes = [dimension.size for dimension in proto.tensor_shape.dim]
    try:
        # A missing value repeats the last one, so a shape alone could take all memory.
        if min(sizes, default=0) < 0 or math.prod(sizes) > MOST_VALUES:
            raise ValueError(f"its shape needs at most {MOST_VALUES:,} values. Received: {sizes}")
        return tf.constant(tf.make_ndarray(proto))
    except (ValueError, TypeError) as error:
        raise Refused(grpc.StatusCode.INVALID_ARGUMENT, f"Tensor {name!r} cannot be read: {error}") from None


def signature_def_map(version):
    found = get_model_metadata_pb2.SignatureDefMap()
    for name, signature in version.signature_defs.items():
        found.signature_def[name].CopyFrom(signature)
    return found


class Rest(http.server.BaseHTTPRequestHandler):
    """REST; `model` is set by the subclass that is served."""

    model = None

    def do_GET(self):
        self._answer(MODEL_PATH, self._describe)

    def do_POST(self):
        self._answer(PREDICT_PATH, self._predict)

    def log_message(self, *arguments):
        pass

    def _answer(self, path, answer):
        found = path.fullmatch(self.path)
        try:
            if not found:
                raise Refused(grpc.StatusCode.NOT_FOUND, f"Malformed request: {self.command} {self.path}")
            version = self.model.require(found["name"], int(found["version"]) if found["version"] else None)
            status, content = 200, answer(found, version)
        except Refused as refused:
            status = STATUSES.get(refused.status, 400)
            content = {"error": str(refused)}
        body = json.dumps(content, indent=2).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _describe(self, found, version):
        if not found["metadata"]:
            status = {"error_code": "OK", "error_message": ""}
            described = {"version": str(version.number), "state": "AVAILABLE", "status": status}
            return {"model_version_status": [described]}
        described = json_format.MessageToDict(signature_def_map(version), preserving_proto_field_name=True)
        spec = {"name": self.model.name, "signature_name": "", "version": str(version.number)}
        return {"model_spec": spec, "metadata": {SIGNATURE_DEF: described}}

    def _predict(self, found, version):
        try:
            request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            signature = request.get("signature_name", "serving_default")
            specs = version.signature(signature).inputs
            by_row = "instances" in request
            columns = rows_to_columns(request["instances"], specs) if by_row else request["inputs"]
            columns = columns if isinstance(columns, dict) else dict.fromkeys(specs, columns)
            inputs = {name: tensor(values, specs[name].dtype) for name, values in columns.items() if name in specs}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            message = f"JSON Parse error or missing key: {error!r}"
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, message) from None
        outputs = self.model.predict(version, signature, inputs)
        outputs = {name: to_json(name, values) for name, values in outputs.items()}
        only = next(iter(outputs.values())) if len(outputs) == 1 else None
        if not by_row:
            return {"outputs": outputs if only is None else only}
        rows = only if only is not None else [dict(zip(outputs, row)) for row in zip(*outputs.values(), strict=True)]
        return {"predictions": rows}


def rows_to_columns(rows, specs):
    """`instances` as `inputs`: a row is an object with all inputs, or the value of the only one."""
    if rows and isinstance(rows[0], dict) and set(rows[0]) != {"b64"}:
        return {name: [row[name] for row in rows] for name in rows[0]}
    if len(specs) != 1:
        raise ValueError(f"each instance needs {sorted(specs)}")
    return rows


def tensor(values, dtype):
    def from_base64(value):
        if isinstance(value, list):
            return [from_base64(item) for item in value]
        return base64.b64decode(value["b64"]) if isinstance(value, dict) else value

    dtype = tf.dtypes.as_dtype(dtype)
    made = tf.constant(from_base64(values), dtype)
    if dtype == tf.int32 and tf.reduce_any(tf.cast(made, tf.int64) != tf.constant(values, tf.int64)):
        raise ValueError("needs int32, which TensorFlow would wrap larger integers to")
    return made


def to_json(name, values):
    """Nested lists; bytes are text, or {"b64": …} in outputs whose names end in _bytes."""
    if values.dtype != object:
        return np.asarray(values).tolist()
    if name.endswith("_bytes"):
        return np.vectorize(lambda value: {"b64": base64.b64encode(value).decode()}, [object])(values).tolist()
    return np.vectorize(lambda value: value.decode("utf-8", "replace"), [object])(values).tolist()


if __name__ == "__main__":
    main()
