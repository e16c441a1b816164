"""A model's folder behind Predict and REST, for development and tests only: one process, no batching, no security.

    pip install -r requirements/dev.txt
    python tools/serve.py served/sst2 [--port 8500] [--rest-port 8501]

It answers what TensorFlow Serving answers to the same requests (PredictionService.Predict and GetModelMetadata;
GET /v1/models/NAME[/metadata], POST /v1/models/NAME[/versions/V]:predict), so that a client can be written where no
server binary can be had. It uses the highest version that is there when it starts, and nothing of keras_bert.
"""

import argparse
import base64
import http.server
import json
import os
import re
import threading
from concurrent import futures

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import grpc
import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  Registers the tokenizer's ops.
from google.protobuf import json_format
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import get_model_metadata_pb2, predict_pb2, prediction_service_pb2_grpc

SIGNATURE_DEF = "signature_def"
PREDICT_PATH = re.compile(r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>\d+))?:predict")
MODEL_PATH = re.compile(r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>\d+))?(?P<metadata>/metadata)?")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", help="a model's folder, which holds its versions")
    parser.add_argument("--name", help="the model's name; by default the folder's")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8500, help="of gRPC; 0 takes a free one")
    parser.add_argument("--rest-port", type=int, default=8501)
    arguments = parser.parse_args()
    model = Model(arguments.folder, arguments.name)
    server = grpc.server(futures.ThreadPoolExecutor(4))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(PredictionService(model), server)
    port = server.add_insecure_port(f"{arguments.host}:{arguments.port}")
    server.start()
    rest = http.server.ThreadingHTTPServer((arguments.host, arguments.rest_port), type("", (Rest,), {"model": model}))
    print(f"{model.name} version {model.version}: gRPC {port}, REST {rest.server_address[1]}", flush=True)
    rest.serve_forever()


class Refused(Exception):
    """A request that cannot be answered: a gRPC status and why."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Model:
    """The highest version in a model's folder."""

    def __init__(self, folder, name=None):
        versions = [int(entry) for entry in os.listdir(folder) if entry.isdecimal()]
        if not versions:
            raise SystemExit(f"{folder}: needs a version, such as 1/saved_model.pb. Write one with run.py export.")
        self.name, self.version = name or os.path.basename(os.path.normpath(folder)), max(versions)
        path = os.path.join(folder, str(self.version))
        self._loaded = tf.saved_model.load(path)
        with open(os.path.join(path, "saved_model.pb"), "rb") as file:
            self.signature_defs = saved_model_pb2.SavedModel.FromString(file.read()).meta_graphs[0].signature_def
        self._lock = threading.Lock()

    def require(self, name, version=None):
        if name != self.name or version not in (None, self.version):
            versioned = "" if version is None else f" version {version}"
            raise Refused(grpc.StatusCode.NOT_FOUND, f"Servable not found for request: {name}{versioned}")

    def signature(self, name):
        """The SignatureDef; that of the initialization, which the loader keeps beside them, is none."""
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
            with self._lock:
                outputs = self._loaded.signatures[signature](**inputs)
        except (tf.errors.OpError, TypeError, ValueError) as error:
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from None
        return {name: output.numpy() for name, output in outputs.items()}


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """gRPC."""

    def __init__(self, model):
        self._model = model

    def Predict(self, request, context):
        try:
            name = self._require(request)
            inputs = {key: tf.constant(tf.make_ndarray(value)) for key, value in request.inputs.items()}
            outputs = self._model.predict(name, inputs)
        except Refused as refused:
            context.abort(refused.status, str(refused))
        kept = request.output_filter or outputs
        response = predict_pb2.PredictResponse()
        self._describe(response.model_spec, name)
        for key in kept:
            if key not in outputs:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"output tensor alias not found in signature: {key}")
            response.outputs[key].CopyFrom(tf.make_tensor_proto(outputs[key]))
        return response

    def GetModelMetadata(self, request, context):
        try:
            self._require(request)
            if list(request.metadata_field) != [SIGNATURE_DEF]:
                raise Refused(grpc.StatusCode.INVALID_ARGUMENT, f"Metadata field needs {SIGNATURE_DEF}.")
        except Refused as refused:
            context.abort(refused.status, str(refused))
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        self._describe(response.model_spec)
        response.metadata[SIGNATURE_DEF].Pack(signature_def_map(self._model))
        return response

    def _require(self, request):
        """The signature's name."""
        spec = request.model_spec
        self._model.require(spec.name, spec.version.value if spec.HasField("version") else None)
        return spec.signature_name or "serving_default"

    def _describe(self, spec, signature=""):
        spec.name, spec.signature_name = self._model.name, signature
        spec.version.value = self._model.version


def signature_def_map(model):
    found = get_model_metadata_pb2.SignatureDefMap()
    for name, signature in model.signature_defs.items():
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
            self.model.require(found["name"], int(found["version"]) if found["version"] else None)
            status, content = 200, answer(found)
        except Refused as refused:
            status = 404 if refused.status == grpc.StatusCode.NOT_FOUND else 400
            content = {"error": str(refused)}
        body = json.dumps(content, indent=2).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _describe(self, found):
        if not found["metadata"]:
            status = {"error_code": "OK", "error_message": ""}
            version = {"version": str(self.model.version), "state": "AVAILABLE", "status": status}
            return {"model_version_status": [version]}
        described = json_format.MessageToDict(signature_def_map(self.model), preserving_proto_field_name=True)
        spec = {"name": self.model.name, "signature_name": "", "version": str(self.model.version)}
        return {"model_spec": spec, "metadata": {SIGNATURE_DEF: described}}

    def _predict(self, found):
        try:
            request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            signature = request.get("signature_name", "serving_default")
            specs = self.model.signature(signature).inputs
            by_row = "instances" in request
            columns = rows_to_columns(request["instances"], specs) if by_row else request["inputs"]
            columns = columns if isinstance(columns, dict) else dict.fromkeys(specs, columns)
            inputs = {name: tensor(values, specs[name].dtype) for name, values in columns.items() if name in specs}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"JSON Parse error or missing key: {error!r}"
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, message) from None
        outputs = {name: to_json(name, values) for name, values in self.model.predict(signature, inputs).items()}
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

    return tf.constant(from_base64(values), tf.dtypes.as_dtype(dtype))


def to_json(name, values):
    """Nested lists; bytes are text, or {"b64": …} in outputs whose names end so."""
    if values.dtype != object:
        return np.asarray(values).tolist()
    if name.endswith("_bytes"):
        return np.vectorize(lambda value: {"b64": base64.b64encode(value).decode()}, [object])(values).tolist()
    return np.vectorize(lambda value: value.decode("utf-8", "replace"), [object])(values).tolist()


if __name__ == "__main__":
    main()
