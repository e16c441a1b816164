"""An array that can be appended to."""

import numpy as np
from numpy.typing import ArrayLike, DTypeLike


class GrowingArray:
    """Numbers of one type in a single growing block of memory, without Python objects or parts to join at the end.

    Args:
        dtype: type of the numbers.
    """

    def __init__(self, dtype: DTypeLike):
        self._dtype = np.dtype(dtype)
        self._bytes = bytearray()

    def extend(self, values: ArrayLike) -> None:
        """Appends numbers [n], which must fit the type."""
        self._bytes += np.asarray(values, self._dtype).tobytes()

    def array(self) -> np.ndarray:
        """All numbers, [n]. The array shares this object's memory: nothing can be appended while it is in use."""
        return np.frombuffer(self._bytes, self._dtype)
