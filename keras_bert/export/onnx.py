"""Writes a model in ONNX, for onnxruntime."""

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.core.imports import import_extra, require_extra
from keras_bert.export.portable import EXAMPLES, Format, portable_signature, write_portable
from keras_bert.export.signature import Signature
from keras_bert.inference.loading import LoadedModel

ONNX = Format(
    name="onnx",
    file="model.onnx",
    about="""\
# {name} in ONNX

`model.onnx` answers tokens. Weights: {stored}; {megabytes:.1f} MB. There are no inputs of strings: `tokenizer.py` makes
the inputs in plain Python, and transformers' tokenizer makes the same. `pip install onnxruntime` runs the model.
""",
    example="""\

```python
import numpy as np
import onnxruntime
from tokenizer import {tokenizer}

tokenizer = {tokenizer}.from_folder(".")
session = onnxruntime.InferenceSession("model.onnx")
ids, mask, types = (np.array({row}) for row in tokenizer.encode({texts}, max_length={max_length}).values())
inputs = {{"input_ids": ids, "attention_mask": mask, "token_type_ids": types}}
names = [output.name for output in session.get_outputs()]
outputs = dict(zip(names, session.run(names, dict(inputs{more}))))
```
""",
)

# transformers' names, so that its tokenizers' output can be passed unchanged.
_NAMES = {"input_word_ids": "input_ids", "input_mask": "attention_mask", "input_type_ids": "token_type_ids"}
_OPSET = 18  # onnxruntime 1.14.
_LARGEST = 2**31 - 1  # The size limit of a protobuf message.
TOLERANCE = 1e-4


def write_onnx(output: files.StrPath, bert: LoadedModel, top_k: int = 5, encoder_only: bool = False) -> int:
    """Writes the folder of `write_portable` with a model in ONNX. Returns the size of model.onnx in bytes.

    Args:
        output, bert, top_k, encoder_only: see `write_portable` and `portable_signature`.

    Raises:
        UserError: a package of the extra `onnx` is not installed, the model has ops that ONNX lacks, or onnxruntime's
            answers differ; or see `write_portable` and `portable_signature`.
    """
    require_extra("onnx", "--format onnx")

    def converted() -> tuple[Signature, bytes]:
        signature = _as_in_transformers(portable_signature(bert, ONNX, top_k, encoder_only))
        content = convert(signature, bert.path)
        check(signature, content, bert.path, bert.config.max_position_embeddings)
        return signature, content

    return write_portable(output, bert, ONNX, converted, "float32", encoder_only)


def _as_in_transformers(signature: Signature) -> Signature:
    """The signature with int64 inputs under transformers' names."""
    inputs = [tf.TensorSpec(spec.shape, tf.int64, _NAMES.get(spec.name, spec.name)) for spec in signature.inputs]
    return Signature(lambda *columns: signature.function(*(tf.cast(c, tf.int32) for c in columns)), tuple(inputs))


def convert(signature: Signature, origin: str) -> bytes:
    """The content of an .onnx file with the signature.

    Args:
        origin: the model, for messages.

    Raises:
        UserError: the function needs ops that ONNX lacks, or its weights exceed protobuf's 2 GiB.
    """
    tf2onnx = import_extra("tf2onnx", "--format onnx")
    traced = signature.traced()
    size = sum(variable.dtype.size * variable.shape.num_elements() for variable in traced.graph.variables)
    if size > _LARGEST:
        raise UserError(
            f"{origin}: --format onnx needs weights of at most 2 GiB. Received: {size / 2**30:.1f} GiB. Export it as a "
            "SavedModel."
        )
    graph, inputs, outputs = _frozen(traced)
    try:
        with _messages_of("tf2onnx") as said:
            model, _ = tf2onnx.convert.from_graph_def(
                graph,
                input_names=list(inputs),
                output_names=list(outputs),
                tensors_to_rename={**inputs, **outputs},
                opset=_OPSET,
            )
        reason = next((line for line in said if "not supported" in line), "")
    except (ValueError, KeyError, RuntimeError, NotImplementedError, AssertionError) as error:  # It declares no type.
        reason = str(error) or type(error).__name__
    if reason:
        raise UserError(
            f"{origin}: --format onnx needs a model of ONNX's own ops. Received: one that needs others "
            f"({reason.strip().splitlines()[0][:200]}). Export it as a SavedModel."
        )
    return model.SerializeToString()


def _frozen(
    function: tf.types.experimental.ConcreteFunction,
) -> tuple[tf.compat.v1.GraphDef, dict[str, str], dict[str, str]]:
    """`(the graph, {tensor: input}, {tensor: output})`, pruned to what the outputs need, weights included.

    tf2onnx's own `from_function` would keep strings that no output needs, and fail on them.
    """
    frozen = convert_variables_to_constants_v2(function, lower_control_flow=False, aggressive_inlining=True)
    inputs = {tensor.name: tensor.op.name for tensor in frozen.inputs}
    names = sorted(function.structured_outputs)
    outputs = {tensor.name: name for tensor, name in zip(frozen.outputs, names, strict=True)}
    needed = [tensor.op.name for tensor in (*frozen.inputs, *frozen.outputs)]
    graph = tf.compat.v1.graph_util.extract_sub_graph(frozen.graph.as_graph_def(), needed)
    return graph, inputs, outputs


@contextlib.contextmanager
def _messages_of(package: str) -> Iterator[list[str]]:
    """Yields a list that collects what a package logs within the context, instead of showing it."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger(package)
    before = logger.handlers, logger.propagate
    logger.handlers, logger.propagate = [handler], False
    try:
        yield said
    finally:
        logger.handlers, logger.propagate = before


def check(signature: Signature, content: bytes, origin: str, longest: int) -> None:
    """Raises `UserError` unless onnxruntime matches TensorFlow's floats within `TOLERANCE`, for two shapes."""
    function, names = signature.traced(), [spec.name for spec in signature.inputs]
    shapes = [(rows, min(seq, longest)) for rows, seq in ((1, 8), (3, 24))]
    batches = [[_example(spec, *shape) for spec in signature.inputs] for shape in shapes]
    expected = [function(*map(tf.constant, inputs)) for inputs in batches]
    floats = sorted(name for name, values in expected[0].items() if values.dtype.is_floating)
    try:
        session = open_onnx(content)
        received = [session.run(floats, dict(zip(names, inputs, strict=True))) for inputs in batches]
    except Exception as error:  # onnxruntime's error types have no common base.
        raise UserError(
            f"{origin}: --format onnx needs a model that onnxruntime runs. Received: {str(error).splitlines()[0]} "
            "Export a SavedModel, and please report this."
        ) from None
    for ours, theirs in zip(expected, received, strict=True):
        for name, values in zip(floats, theirs, strict=True):
            if not np.allclose(values, ours[name], rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
                raise UserError(
                    f"{origin}: needs onnxruntime to answer as TensorFlow does, within {TOLERANCE}. Received: {name} "
                    f"off by {np.abs(values - ours[name]).max():.1e}. Export a SavedModel, and please report this."
                )


def _example(spec: tf.TensorSpec, batch: int, seq: int) -> np.ndarray:
    """Tokens [batch, (2,) seq], with a half-padded last row in larger batches; for other inputs, `EXAMPLES`."""
    if spec.name not in _NAMES.values():
        return np.tile(EXAMPLES[spec.name], (batch, 1))
    shape = (batch, 2, seq) if spec.shape.rank == 3 else (batch, seq)
    values = np.ones(shape, np.int64)
    if spec.name == "input_ids":
        values = np.arange(values.size).reshape(shape) % 100
    if spec.name == "token_type_ids":
        values[..., : seq // 2] = 0
    if batch > 1:
        values[-1, ..., seq // 2 :] = 0
    return values


def open_onnx(model: str | bytes) -> Any:
    """An `onnxruntime.InferenceSession` on one thread of the CPU for the path or the content of a file."""
    onnxruntime = import_extra("onnxruntime", "Reading an ONNX model")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
