"""Vectors kept in a file until their overall range, on which the int8 codes depend, is known."""

from collections.abc import Iterator
from typing import IO

import numpy as np

_COPIED_AT_ONCE = 1 << 22  # Bytes.


class SpooledVectors:
    """Float32 vectors [rows, width] in a file, with the range of each dimension.

    Args:
        stream: an empty file, open for reading and writing.

    Attributes:
        ranges: float32 [2, width], the lowest and the highest values so far; None before the first vector.
    """

    ranges: np.ndarray | None = None

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def append(self, vectors: np.ndarray) -> None:
        """Adds vectors float32 [rows, width]."""
        if not len(vectors):
            return
        self._stream.write(np.ascontiguousarray(vectors).data)
        low, high = vectors.min(axis=0), vectors.max(axis=0)
        if self.ranges is not None:
            low, high = np.minimum(low, self.ranges[0]), np.maximum(high, self.ranges[1])
        self.ranges = np.stack([low, high])

    def blocks(self) -> Iterator[np.ndarray]:
        """Yields all vectors in order, in float32 blocks [rows, width] of a few megabytes."""
        if self.ranges is None:
            return
        width = self.ranges.shape[1]
        row = width * self.ranges.itemsize
        self._stream.seek(0)
        while block := self._stream.read(max(1, _COPIED_AT_ONCE // row) * row):
            yield np.frombuffer(block, "float32").reshape(-1, width)
