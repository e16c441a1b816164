"""An array that grows at its end."""

from typing import Any

import numpy as np


class GrowingArray:
    """Numbers of one type that are appended to, in memory once: without a list of Python objects, or of parts to join.

    Args:
        dtype: of the numbers.
    """

    def __init__(self, dtype: Any):
        self._dtype = np.dtype(dtype)
        self._bytes = bytearray()

    def extend(self, values: Any):
        """Appends an array or a list, [n], which the type must hold."""
        self._bytes += np.asarray(values, self._dtype).tobytes()

    def array(self) -> np.ndarray:
        """All of them, [n]. It is the same memory, so that nothing can be appended any more while it is used."""
        return np.frombuffer(self._bytes, self._dtype)
