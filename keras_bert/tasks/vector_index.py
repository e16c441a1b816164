"""A nearest-neighbour index of vectors, as the library USearch opens it from any of its languages."""

import os
import tempfile
from types import TracebackType
from typing import Any

import numpy as np

from keras_bert.extras import import_extra
from keras_bert.whole_files import atomic_write


class VectorIndex:
    """Collects vectors and writes their index, by cosine, when the `with` block ends without an error.

    The key of a vector is the number of the vectors before it.

    Args:
        path: the file to write.

    Raises:
        UserError: the package usearch is not installed.
    """

    def __init__(self, path: str) -> None:
        self._path, self._usearch, self._count = path, import_extra("usearch.index", "--index"), 0
        self._index: Any = None

    def __enter__(self) -> "VectorIndex":
        return self

    def append(self, vectors: np.ndarray) -> None:
        """Adds vectors float32 [texts, width]."""
        if self._index is None:
            self._index = self._usearch.Index(ndim=vectors.shape[1], metric="cos", dtype="f32")
        self._index.add(np.arange(self._count, self._count + len(vectors)), vectors)
        self._count += len(vectors)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None or self._index is None:
            return
        with tempfile.TemporaryDirectory() as folder, atomic_write(self._path, "wb") as stream:
            local = os.path.join(folder, "index")
            self._index.save(local)
            with open(local, "rb") as saved:
                while block := saved.read(1 << 22):
                    stream.write(block)
