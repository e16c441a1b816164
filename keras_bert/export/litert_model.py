"""Runs a LiteRT export with the interpreter package, as a device would."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from keras_bert import files
from keras_bert.errors import UserError
from keras_bert.export.edge_signature import TOKENS
from keras_bert.export.litert import MODEL
from keras_bert.extras import import_extra


class LiteRTModel:
    """The signature `tokens` of an export for LiteRT, run on the CPU by XNNPACK.

    Args:
        folder: what `export --format litert` wrote, on a local disk.
        threads: the number of threads.

    Raises:
        UserError: there is no such export, or the package ai-edge-litert is not installed.
    """

    def __init__(self, folder: files.StrPath, threads: int = 1) -> None:
        path = files.join(folder, MODEL)
        if not files.is_file(path):
            raise UserError(f"{folder}: needs {MODEL}, as `export --format litert` writes it, and lacks it.")
        interpreter = import_extra("ai_edge_litert.interpreter", f"{path}").Interpreter(path, num_threads=threads)
        self._run = interpreter.get_signature_runner(TOKENS)

    def __call__(self, inputs: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        """The outputs `{name: array}` for the inputs of the signature; other inputs are ignored.

        Raises:
            ValueError: an input has another shape than the signature, such as two rows where it takes one.
        """
        arrays = {}
        for name, details in self._run.get_input_details().items():
            array, shape = np.asarray(inputs[name], np.int32), [int(size) for size in details["shape_signature"]]
            if array.ndim != len(shape) or any(size not in (-1, given) for size, given in zip(shape, array.shape)):
                raise ValueError(f"{name}: needs the shape {shape} (-1: any). Received: {list(array.shape)}.")
            arrays[name] = array
        return self._run(**arrays)
