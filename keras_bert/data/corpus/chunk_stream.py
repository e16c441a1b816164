"""A binary stream over blocks of bytes, for libraries that read from a file."""

import io
from collections.abc import Iterator
from typing import Any


class ChunkStream(io.RawIOBase):
    """Reads the blocks of an iterator one after the other.

    What the iterator raises comes out of `read`, after all that it gave before; an `io.BufferedReader` would drop some.
    """

    def __init__(self, chunks: Iterator[bytes]):
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
