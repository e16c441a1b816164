"""One .safetensors file, its tensors seen where they lie."""

import json

import ml_dtypes
import numpy as np
import safetensors

from keras_bert import files
from keras_bert.errors import UserError

# What BERTs are published in. A view in place of `safe_open`'s copy takes a third off the time of loading.
_FLOATS = {"F16": np.float16, "BF16": ml_dtypes.bfloat16, "F32": np.float32, "F64": np.float64}


class SafetensorsFile:
    """The header is checked by the safetensors library; values are views of the file, mapped into memory.

    Attributes:
        names: the tensors' names.
    """

    def __init__(self, path):
        """Raises `UserError`: the file is not there, not whole, or not of this format."""
        if not files.is_file(path):
            raise UserError(f"{path}: is missing. Fetch it too.")
        with files.local_copy(path) as local:
            try:
                with safetensors.safe_open(local, framework="np") as checked:
                    self.names = list(checked.keys())
            except (safetensors.SafetensorError, OSError) as error:
                raise UserError(
                    f"{path}: is not a whole safetensors file ({error}). Fetch or write it again."
                ) from None
            self._content = files.mapped(local)
        header_bytes = int.from_bytes(self._content[:8].tobytes(), "little")
        self._header = json.loads(self._content[8 : 8 + header_bytes].tobytes())
        self._first = 8 + header_bytes

    def shape(self, name):
        return tuple(self._header[name]["shape"])

    def kind(self, name):
        """The format's name for the type of the numbers: F32, BF16, I64, …"""
        return self._header[name]["dtype"]

    def value(self, name):
        """A read-only view of a tensor of floats; None for other numbers."""
        if self.kind(name) not in _FLOATS:
            return None
        begin, end = self._header[name]["data_offsets"]
        values = self._content[self._first + begin : self._first + end].view(_FLOATS[self.kind(name)])
        return values.reshape(self.shape(name))
