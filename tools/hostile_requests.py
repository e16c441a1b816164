"""Requests as a fuzzer sends them: broken texts, which need an answer, and broken messages, which need a refusal."""

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

# The caller's fault. Any other status, or no answer in time, is the server's.
REFUSALS = {"INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "OUT_OF_RANGE"}
LONGEST = 20_000  # Characters of a text.


def texts(rng):
    """{what it is: a text as bytes}; a model has to answer each."""
    characters = rng.integers(1, 0x11000, 200)
    return {
        "random bytes": rng.bytes(int(rng.integers(1, 400))),
        "random characters": "".join(chr(code) for code in characters if not 0xD800 <= code < 0xE000).encode(),
        "cut UTF-8": "naïve café 東京".encode()[: int(rng.integers(1, 20))],
        "surrogates": b"\xed\xa0\x80\xed\xbf\xbf",
        "zeros": b"\x00" * int(rng.integers(1, 50)),
        "nothing": b"",
        "blanks": " \t\u00a0\u3000\u200b\r\n".encode() * int(rng.integers(1, 20)),
        "a word without end": b"a" * int(rng.integers(1, LONGEST)),
        "many words": b"word " * int(rng.integers(1, LONGEST // 5)),
        "accents without letters": "\u0301\u0308".encode() * int(rng.integers(1, 200)),
        "emoji": "👩\u200d👩\u200d👧\ufe0f🏳️\u200d🌈".encode() * int(rng.integers(1, 50)),
        "the tokenizer's own tokens": b"[CLS] [SEP] [MASK] [PAD] [unused1] ##ing </s>",
        "a byte order mark": "\ufeff\ufffe\u202eright to left".encode(),
    }


def messages(rng, name, input_name):
    """{what it is: a request}; a server has to refuse each, except that it may answer an empty or a large batch."""

    def request(*values, model=name, key=input_name, signature=""):
        built = predict_pb2.PredictRequest()
        built.model_spec.name, built.model_spec.signature_name = model, signature
        for value in values:
            built.inputs[key].CopyFrom(value)
        return built

    text = tf.make_tensor_proto(["a text"])
    missing = tf.make_tensor_proto(np.zeros([2], "float32"))
    missing.tensor_content = b"\x00"
    vast = tf.make_tensor_proto(["a text"])
    vast.tensor_shape.dim[0].size = int(rng.integers(2**33, 2**40))
    negative = tf.make_tensor_proto(["a text"])
    negative.tensor_shape.dim[0].size = -2
    unknown = request(text)
    unknown.model_spec.version.value = 10**6
    return {
        "no input": request(),
        "an unknown input": request(text, key="texts"),
        "numbers for texts": request(tf.make_tensor_proto([1.5, float("nan")])),
        "a scalar": request(tf.make_tensor_proto("a text")),
        "a matrix": request(tf.make_tensor_proto([["a", "b"], ["c", "d"]])),
        "an empty batch": request(tf.make_tensor_proto(np.zeros([0], object), tf.string)),
        "a large batch": request(tf.make_tensor_proto(["a text"] * 300)),
        "content missing": request(missing),
        "a vast shape": request(vast),
        "a negative shape": request(negative),
        "no tensor": request(type(text)()),
        "an unknown model": request(text, model="another"),
        "an unknown signature": request(text, signature="another"),
        "an unknown version": unknown,
        "an unknown output": _filtered(request(text)),
    }


def _filtered(request):
    request.output_filter.append("another")
    return request


def text_request(name, input_name, text):
    """A Predict request for one text."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = name
    request.inputs[input_name].CopyFrom(tf.make_tensor_proto([text]))
    return request
