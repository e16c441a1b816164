"""Writes a model for LiteRT (TensorFlow Lite), for phones and other devices without TensorFlow."""

import itertools
import tempfile

import tensorflow as tf

from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.export.portable import TOKENS, Format, portable_signature, write_portable
from keras_bert.export.signature import Signature
from keras_bert.inference.loading import LoadedModel

NONE, FLOAT16, INT8 = QUANTIZATIONS = ("none", "float16", "int8")
_STORED = {
    NONE: "float32",
    FLOAT16: "float16; computed in float32",
    INT8: "8-bit integers with a scale for each row; activations stay float32",
}
LITERT = Format(
    name="litert",
    file="model.tflite",
    about="""\
# {name} for LiteRT

`model.tflite` has the signature `tokens`. Weights: {stored}; {megabytes:.1f} MB. There is no signature on strings, for
which LiteRT has no ops: `tokenizer.py` makes the inputs in plain Python. `pip install ai-edge-litert` runs the model.
""",
    example="""\

```python
import numpy as np
from ai_edge_litert.interpreter import Interpreter
from tokenizer import {tokenizer}

tokenizer = {tokenizer}.from_folder(".")
run = Interpreter("model.tflite", num_threads=2).get_signature_runner("tokens")
rows = tokenizer.encode({texts}, max_length={max_length})
outputs = run(**{{name: np.array({row}, "int32") for name, row in rows.items()}}{more})
```
""",
)


def write_litert(
    output: files.StrPath, bert: LoadedModel, quantization: str = NONE, top_k: int = 5, encoder_only: bool = False
) -> int:
    """Writes the folder of `write_portable` with a model for LiteRT. Returns the size of model.tflite in bytes.

    Args:
        quantization: how weights are stored, one of `QUANTIZATIONS`. Only INT8 changes the graph, for embeddings; the
            converter does the rest.
        output, bert, top_k, encoder_only: see `write_portable` and `portable_signature`.

    Raises:
        UserError: an unknown quantization; or see `write_portable` and `portable_signature`.
    """
    if quantization not in QUANTIZATIONS:
        raise UserError(f"quantization: needs one of {', '.join(QUANTIZATIONS)}. Received: {quantization!r}.")

    def converted() -> tuple[Signature, bytes]:
        signature = portable_signature(bert, LITERT, top_k, encoder_only, rounds_tables=quantization == INT8)
        return convert(signature, quantization, bert.path)

    return write_portable(output, bert, LITERT, converted, _STORED[quantization], encoder_only)


def convert(signature: Signature, quantization: str, origin: str) -> tuple[Signature, bytes]:
    """`(the signature, the content of its .tflite file)`; for a single row only if the converter needs that.

    Args:
        signature: the signature `tokens`, with all dimensions resizable.
        quantization: how weights are stored, one of `QUANTIZATIONS`. Activations are float32.
        origin: the model, for messages.

    Raises:
        UserError: the function needs ops that LiteRT lacks.
    """
    function = signature.traced()
    if _has_loop_over_tokens(function):  # The converter lowers an LSTM only for a known batch size.
        one_row = tuple(tf.TensorSpec([1, *spec.shape[1:]], spec.dtype, name=spec.name) for spec in signature.inputs)
        signature = signature._replace(inputs=one_row)
        function = signature.traced()
    try:
        return signature, _converted(function, quantization)
    except Exception as error:
        if type(error).__name__ != "ConverterError":  # The class is not public.
            raise
        reason = str(error).strip().splitlines()[0][:200]
    raise UserError(
        f"{origin}: --format litert needs a model of LiteRT's own ops. Received: one that needs others ({reason}). "
        "Export it as a SavedModel."
    )


def _has_loop_over_tokens(function: tf.types.experimental.ConcreteFunction) -> bool:
    """Whether the graph collects a loop's states in a list, as an LSTM or a GRU does."""
    graph = function.graph.as_graph_def()
    nodes = itertools.chain(graph.node, *(called.node_def for called in graph.library.function))
    return any(node.op == "TensorListReserve" for node in nodes)


def _converted(function: tf.types.experimental.ConcreteFunction, quantization: str) -> bytes:
    holder = tf.Module()
    holder.variables_read = list(function.graph.variables)
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(holder, folder, signatures={TOKENS: function})
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[TOKENS])
        if quantization != NONE:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if quantization == FLOAT16:
            converter.target_spec.supported_types = [tf.float16]
        return converter.convert()
