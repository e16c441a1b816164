"""Writes a model's next version for TensorFlow Serving.

A version includes warm-up requests, which Serving runs before the version takes traffic. They are in
`assets.extra/tf_serving_warmup_requests`, a TFRecord file of PredictionLog messages
(tensorflow_serving/apis/prediction_log.proto). TensorFlow does not include Serving's protos, and tensorflow-serving-api
would pull in grpcio for a few bytes; so the five messages are declared here with Serving's field numbers, and serialize
to the same bytes.
"""

import os
from collections.abc import Mapping

import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2  # noqa: F401
from tensorflow.core.framework import tensor_pb2  # noqa: F401  Registers TensorProto.

from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath, exists, is_remote, join, list_folder, make_folder
from keras_bert.core.locks import NAME, taken
from keras_bert.core.stores import as_os_errors
from keras_bert.core.whole_files import whole_folder, write_file
from keras_bert.export.serving_function import ServingFunction
from keras_bert.inputs.rows import doubling_lengths

MODELS, BATCHING = "models.config", "batching.config"
_OF_PATTERNS = set("*?[\\")  # TensorFlow looks for the weights of `a[1]` in `a1`.

_MODELS = """\
# tensorflow_model_server --model_config_file={base}/{file}
model_config_list {{
  config {{
    name: "{name}"
    base_path: "{base}"
    model_platform: "tensorflow"
    # Only the newest version; to serve an older one too: specific {{ versions: 1 versions: 2 }}
    model_version_policy {{ latest {{ num_versions: 1 }} }}
  }}
}}
"""
_BATCHING = """\
# tensorflow_model_server --enable_batching --batching_parameters_file={base}/{file}
max_batch_size {{ value: 32 }}
# How long a request waits for others; 0 is best if there are few.
batch_timeout_micros {{ value: 1000 }}
max_enqueued_batches {{ value: 100 }}
num_batch_threads {{ value: 4 }}
"""


def model_name(output: StrPath) -> str:
    """The name of the model in Serving: the folder's own name, also for "." and the like."""
    output = os.fspath(output)
    return os.path.basename(os.path.normpath(output if is_remote(output) else os.path.abspath(output)))


def write_serving_files(output: StrPath) -> None:
    """Writes `models.config` and `batching.config` into `output` unless they exist, so edited files stay unchanged.

    They give the folder's path as the server sees it: below /models, as in Serving's images, or its address in a store.
    """
    name = model_name(output)
    is_elsewhere = is_remote(output) and not os.fspath(output).startswith("file://")
    base = os.fspath(output).rstrip("/") if is_elsewhere else f"/models/{name}"
    for file, content in ((MODELS, _MODELS), (BATCHING, _BATCHING)):
        path = join(output, file)
        if not exists(path):
            write_file(path, content.format(name=_escaped(name), base=_escaped(base), file=file))


def _escaped(text: str) -> str:
    """A text escaped for a quoted string in protobuf's text format."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


FOLDER, FILE = "assets.extra", "tf_serving_warmup_requests"

_PACKAGE = "keras_bert.warm_up"
_STRING, _MESSAGE = descriptor_pb2.FieldDescriptorProto.TYPE_STRING, descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
# {message: [(field, number, type)]}, as in model.proto, predict.proto and prediction_log.proto.
_MESSAGES = {
    "ModelSpec": [("name", 1, _STRING), ("signature_name", 3, _STRING)],
    "Input": [("key", 1, _STRING), ("value", 2, ".tensorflow.TensorProto")],
    "PredictRequest": [("model_spec", 1, "ModelSpec"), ("inputs", 2, "Input")],
    "PredictLog": [("request", 1, "PredictRequest")],
    "PredictionLog": [("predict_log", 6, "PredictLog")],
}
_REPEATED = ("inputs",)  # A map is a repeated message with key and value.


def write_warm_up(folder: StrPath, model_name: str, function: ServingFunction) -> int:
    """Writes one-row requests for every signature and each of `doubling_lengths` into a version's folder.

    Returns: the number of requests.
    """
    lengths = doubling_lengths(function.text_inputs.lengths[-1])
    requests = [
        _request(model_name, signature, warm_up_values(function, signature, length))
        for signature in function.signatures
        for length in lengths
    ]
    make_folder(join(folder, FOLDER))
    with tf.io.TFRecordWriter(join(folder, FOLDER, FILE)) as writer:
        for request in requests:
            writer.write(request)
    return len(requests)


def warm_up_values(function: ServingFunction, signature: str, length: int) -> dict[str, list]:
    """A batch of one row for every input of a signature: `length` tokens, or a string of about as many."""
    vocabulary = function.text_inputs.vocabulary
    word = next((token for token in vocabulary.tokens if token.isascii() and token.isalpha()), vocabulary.tokens[-1])
    token = {"input_word_ids": vocabulary.ids[word], "input_mask": 1}
    values = {}
    for spec in function.inputs[signature]:
        if special := function.warm_up[signature].get(spec.name):
            row = special(word, length)
        elif spec.dtype == tf.string:
            row = " ".join([word] * max(1, length - 2))
        else:
            row = [token.get(spec.name, 0)] * length
            row = [row] * 2 if spec.shape.rank == 3 else row  # Two choices.
        values[spec.name] = [row]
    return values


def _request(model_name: str, signature: str, inputs: Mapping[str, list]) -> bytes:
    log = _message("PredictionLog")()
    request = log.predict_log.request
    request.model_spec.name, request.model_spec.signature_name = model_name, signature
    for name, values in inputs.items():
        request.inputs.add(key=name, value=tf.make_tensor_proto(values))
    return log.SerializeToString()


def _message(name: str) -> type:
    pool = descriptor_pool.Default()
    try:
        descriptor = pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")
    except KeyError:
        pool.AddSerializedFile(_file().SerializeToString())
        descriptor = pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")
    return message_factory.GetMessageClass(descriptor)


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="keras_bert/warm_up.proto",
        package=_PACKAGE,
        syntax="proto3",
        dependency=["tensorflow/core/framework/tensor.proto"],
    )
    for message, fields in _MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, number, kind in fields:
            field = described.field.add(name=name, number=number)
            field.label = field.LABEL_REPEATED if name in _REPEATED else field.LABEL_OPTIONAL
            field.type = _STRING if kind == _STRING else _MESSAGE
            if kind != _STRING:
                field.type_name = kind if kind.startswith(".") else f".{_PACKAGE}.{kind}"
    return file


def write_version(output: StrPath, function: ServingFunction) -> str:
    """Atomically writes `output/<version>/`, with a number one above the highest existing version.

    Serving polls the folder and loads every name that is a number, so the version is first written under another name.
    In a store its files are renamed one by one, saved_model.pb last; until then Serving finds no model and polls again.

    Args:
        output: the model's folder, which also names the model.

    Returns: the path of the version.

    Raises:
        UserError: TensorFlow could not load a model from a folder of this name.
    """
    if broken := sorted(_OF_PATTERNS.intersection(f"{os.fspath(output)}{model_name(output)}")):
        raise UserError(
            f"{output}: needs a folder whose name TensorFlow does not read as a pattern. Received: one with "
            f"{' '.join(broken)}. Give another."
        )
    make_folder(output)
    with taken(join(output, NAME)):
        write_serving_files(output)
        version = join(output, str(next_version(output)))
        with whole_folder(version, last="saved_model.pb") as aside, as_os_errors(output):
            with function.tracked() as holder:
                tf.saved_model.save(holder, aside, signatures=function.signatures)
            write_warm_up(aside, model_name(output), function)
    return version


def next_version(output: StrPath) -> int:
    """One above the highest version in a folder; 1 if there is none."""
    return 1 + max((int(name) for name in list_folder(output) if name.isdecimal()), default=0)
