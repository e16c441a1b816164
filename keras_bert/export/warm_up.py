"""Warm-up requests, which TensorFlow Serving runs before a version takes traffic.

They are in the version's folder in `assets.extra/tf_serving_warmup_requests`, a TFRecord file of PredictionLog messages
(tensorflow_serving/apis/prediction_log.proto). TensorFlow does not include Serving's protos, and tensorflow-serving-api
would pull in grpcio for a few bytes; so the five messages are declared here with Serving's field numbers, and serialize
to the same bytes.
"""

from collections.abc import Iterable, Mapping, Sequence

import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2  # noqa: F401
from tensorflow.core.framework import tensor_pb2  # noqa: F401  Registers TensorProto.

from keras_bert.export.multiple_choice import CHOICES
from keras_bert.export.span_pairs import ENDS, SPAN_ENDS, SPAN_STARTS, STARTS
from keras_bert.export.tagging import WORDS
from keras_bert.export.text_inputs import TextInputs
from keras_bert.files import StrPath, join, make_folder
from keras_bert.inputs.padding import doubling_lengths

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
# Both spans are the first word: its characters, and its tokens.
_PLACES = {STARTS: 0, ENDS: 1, SPAN_STARTS: 1, SPAN_ENDS: 2}
_REPEATED = ("inputs",)  # A map is a repeated message of key and value.


def write_warm_up(
    folder: StrPath, model_name: str, inputs: Mapping[str, Sequence[tf.TensorSpec]], text_inputs: TextInputs
) -> int:
    """Writes requests of one row for every signature, at each of `doubling_lengths`.

    Args:
        folder: the version's folder.
        model_name: the name of the model in Serving.
        inputs: the inputs of each signature.
        text_inputs: makes the model's inputs.

    Returns: the number of requests.
    """
    lengths = doubling_lengths(text_inputs.lengths[-1])
    requests = [
        _request(model_name, signature, [(spec.name, _values(spec, length, text_inputs)) for spec in specs])
        for signature, specs in inputs.items()
        for length in lengths
    ]
    make_folder(join(folder, FOLDER))
    with tf.io.TFRecordWriter(join(folder, FOLDER, FILE)) as writer:
        for request in requests:
            writer.write(request)
    return len(requests)


def _values(spec: tf.TensorSpec, length: int, text_inputs: TextInputs) -> list:
    """One row for an input, with `length` tokens or, for strings, about as many; two choices if it has choices."""
    word = next(
        (token for token in text_inputs.vocabulary.tokens if token.isascii() and token.isalpha()),
        text_inputs.vocabulary.tokens[-1],
    )
    if spec.name in _PLACES:
        return [[_PLACES[spec.name]] * 2]
    if spec.dtype == tf.string:
        words = [word] * max(1, length - 2)
        row: str | list = words if spec.name == WORDS else " ".join(words)
        choices = 2 if spec.name == CHOICES else 0
    else:
        row = [{"input_word_ids": text_inputs.vocabulary.ids[word], "input_mask": 1}.get(spec.name, 0)] * length
        choices = 2 if spec.shape.rank == 3 else 0
    return [[row] * choices if choices else row]


def _request(model_name: str, signature: str, inputs: Iterable[tuple[str, list]]) -> bytes:
    log = _message("PredictionLog")()
    request = log.predict_log.request
    request.model_spec.name, request.model_spec.signature_name = model_name, signature
    for name, values in inputs:
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
