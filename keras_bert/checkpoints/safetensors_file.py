"""One .safetensors file: its tensors as views of the file."""

import json

import ml_dtypes
import numpy as np
import safetensors

from keras_bert import files
from keras_bert.errors import UserError

# The types that BERTs are published in. A view instead of `safe_open`'s copy saves a third of the loading time.
_FLOATS = {"F16": np.float16, "BF16": ml_dtypes.bfloat16, "F32": np.float32, "F64": np.float64}


class SafetensorsFile:
    """The safetensors library checks the header; values are views of the memory-mapped file.

    Attributes:
        names: the names of the tensors.
    """

    names: list[str]

    def __init__(self, path: str) -> None:
        """Raises `UserError` if the file is missing, incomplete or not of this format."""
        if not files.is_file(path):
            raise UserError(f"{path}: is missing. Fetch it too.")
        with files.local_copy(path) as local:
            try:
                with safetensors.safe_open(local, framework="np") as checked:
                    self.names = list(checked.keys())
            except (safetensors.SafetensorError, OSError) as error:
                raise UserError(
                    f"{path}: is not a valid safetensors file ({error}). Fetch or write it again."
                ) from None
            self._content = files.mapped(local)
        header_bytes = int.from_bytes(self._content[:8].tobytes(), "little")
        self._header = json.loads(self._content[8 : 8 + header_bytes].tobytes())
        self._first = 8 + header_bytes

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._header[name]["shape"])

    def kind(self, name: str) -> str:
        """The data type, as the format calls it: F32, BF16, I64, …"""
        return self._header[name]["dtype"]

    def value(self, name: str) -> np.ndarray | None:
        """A read-only view of a floating-point tensor; None for other types."""
        if self.kind(name) not in _FLOATS:
            return None
        begin, end = self._header[name]["data_offsets"]
        values = self._content[self._first + begin : self._first + end].view(_FLOATS[self.kind(name)])
        return values.reshape(self.shape(name))
