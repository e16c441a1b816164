"""Runs the exports for LiteRT, for the tests and the benchmarks."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.core.imports import import_extra
from keras_bert.export.litert import LITERT
from keras_bert.export.portable import TOKENS


class LiteRTModel:
    """Runs the signature `tokens` of a LiteRT export on the CPU, with XNNPACK.

    Args:
        folder: the output of `export --format litert`, on a local disk.

    Raises:
        UserError: there is no such export, or the package ai-edge-litert is not installed.
    """

    def __init__(self, folder: files.StrPath, threads: int = 1) -> None:
        path = files.join(folder, LITERT.file)
        if not files.is_file(path):
            raise UserError(f"{folder}: needs {LITERT.file}, as `export --format litert` writes it, and lacks it.")
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
