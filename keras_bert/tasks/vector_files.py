"""Writes vectors into an .npz and a nearest-neighbour index as they are computed, in little memory."""

import contextlib
import os
import shutil
import tempfile
import zipfile
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from keras_bert.config.inference import INT8
from keras_bert.core.array_files import DamagedArrays, open_arrays
from keras_bert.core.errors import UserError, reason
from keras_bert.core.files import is_folder, is_remote, make_folder, parent
from keras_bert.core.imports import import_extra
from keras_bert.core.whole_files import atomic_write
from keras_bert.inference.quantization import SpooledVectors, quantize_vectors, shorten
from keras_bert.tasks.answer_files import held

_COPIED_AT_ONCE = 1 << 22  # Bytes.


class NpzWriter:
    """Writes arrays that grow row by row, holding in memory only the rows being appended.

    An array's length precedes its rows in the file, so the rows wait in unnamed files: next to the .npz or, if that is
    in a store, in this machine's temporary folder. The complete .npz appears when the `with` block ends without an
    error.

    Args:
        path: the file to write; its folder is created.

    Attributes:
        shapes, dtypes: those of each array so far, by name.

    Raises:
        UserError: the path is a folder; or, from `with`, another process writes this file.
    """

    def __init__(self, path: str):
        self._path = path
        self._folder = None if is_remote(path) else parent(path)
        self._streams: dict[str, IO[bytes]] = {}
        self.dtypes: dict[str, np.dtype] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        if is_folder(path):
            raise UserError(f"{path}: needs a file to write. Received: a folder. Name a file in it.")
        make_folder(parent(path))

    def __enter__(self) -> "NpzWriter":
        self._files = contextlib.ExitStack()
        self._files.enter_context(held(self._path))
        return self

    def append(self, name: str, rows: np.ndarray) -> None:
        """Adds rows [rows, …] to the array `name`; all calls must use the same dtype and the same row shape."""
        if name not in self._streams:
            self.put(name, rows[:0])
        self._streams[name].write(np.ascontiguousarray(rows).data)
        count, *row_shape = self.shapes[name]
        self.shapes[name] = (count + len(rows), *row_shape)

    def put(self, name: str, array: np.ndarray) -> None:
        """Adds a whole array, which may be a single value."""
        self._streams[name] = self.scratch()
        self.dtypes[name], self.shapes[name] = array.dtype, array.shape
        self._streams[name].write(array.tobytes())

    def scratch(self) -> IO[bytes]:
        """An unnamed temporary file that is not part of the .npz and is deleted along with the waiting rows."""
        return self._files.enter_context(tempfile.TemporaryFile(dir=self._folder))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *traceback: object) -> None:
        with self._files:
            if kind is None:
                with atomic_write(self._path, "wb") as stream:
                    self._write(stream)
            elif isinstance(error, OSError) and error.filename is None:  # A write to the disk of the waiting rows.
                error.filename = self._path

    def _write(self, stream: IO[bytes]) -> None:
        with zipfile.ZipFile(stream, "w") as archive:
            for name, rows in self._streams.items():
                descr = npy.dtype_to_descr(self.dtypes[name])
                header = {"descr": descr, "fortran_order": False, "shape": self.shapes[name]}
                rows.seek(0)
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    npy.write_array_header_1_0(member, header)
                    shutil.copyfileobj(rows, member, _COPIED_AT_ONCE)


# By dtype: USearch's metric, its scalar type, and the number of scalars in one value.
_INDEXED = {
    "float32": ("cos", "f32", 1),
    "float16": ("cos", "f16", 1),
    "int8": ("cos", "i8", 1),
    "uint8": ("hamming", "b1", 8),
}


class VectorIndex:
    """Collects vectors and writes their index when the `with` block ends without an error.

    The metric is cosine or, for uint8 (packed bits), the Hamming distance. A vector's key is the number of vectors
    before it.

    Raises:
        UserError: the package usearch is not installed.
    """

    def __init__(self, path: str) -> None:
        self._path, self._usearch, self._count = path, import_extra("usearch.index", "--index"), 0
        self._index: Any = None

    def __enter__(self) -> "VectorIndex":
        return self

    def append(self, vectors: np.ndarray) -> None:
        """Adds vectors float32, float16, int8 or uint8 [texts, width]; all calls must use the same dtype and width."""
        if self._index is None:
            metric, scalar, per_value = _INDEXED[vectors.dtype.name]
            self._index = self._usearch.Index(ndim=vectors.shape[1] * per_value, metric=metric, dtype=scalar)
        self._index.add(np.arange(self._count, self._count + len(vectors)), vectors)
        self._count += len(vectors)

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None or self._index is None:
            return
        with tempfile.TemporaryDirectory() as folder, atomic_write(self._path, "wb") as stream:
            local = os.path.join(folder, "index")
            self._index.save(local)
            with open(local, "rb") as saved:
                shutil.copyfileobj(saved, stream, _COPIED_AT_ONCE)


class VectorSink:
    """Shortens and quantizes vectors, and writes them to an .npz and to an index.

    The int8 codes depend on the range of all vectors: without given ranges, the floats wait in an unnamed file.

    Args:
        arrays: receives `embeddings`, and for int8 `ranges`.
        neighbours: receives the vectors too; None for no index.
        precision, size, ranges: see `quantize_vectors`.
    """

    def __init__(
        self,
        arrays: NpzWriter,
        neighbours: VectorIndex | None,
        precision: str,
        size: int | None,
        ranges: np.ndarray | None,
    ) -> None:
        self._arrays, self._neighbours = arrays, neighbours
        self._precision, self._size, self._ranges = precision, size, ranges
        self._waiting = SpooledVectors(arrays.scratch()) if precision == INT8 and ranges is None else None

    def append(self, vectors: np.ndarray) -> None:
        """Adds vectors float32 [rows, width]."""
        vectors = shorten(vectors, self._size)
        if self._waiting:
            self._waiting.append(vectors)
        else:
            self._write(vectors)

    def finish(self) -> None:
        """Writes the waiting vectors and the ranges; call it after the last vectors.

        Raises:
            UserError: there are no vectors to take ranges from.
        """
        if self._waiting:
            self._ranges = self._waiting.ranges
            if self._ranges is None:
                raise UserError("--precision int8: needs a vector at least. Received: only empty texts. Give texts.")
            for block in self._waiting.blocks():
                self._write(block)
        if self._ranges is not None:
            self._arrays.append("ranges", self._ranges)

    @property
    def written(self) -> tuple[tuple[int, ...], str]:
        """The shape and the dtype of the written vectors."""
        return self._arrays.shapes["embeddings"], self._arrays.dtypes["embeddings"].name

    def _write(self, vectors: np.ndarray) -> None:
        small = quantize_vectors(vectors, self._precision, ranges=self._ranges).vectors
        self._arrays.append("embeddings", small)
        if self._neighbours:
            self._neighbours.append(small)


class SparseSink:
    """Writes sparse vectors to an .npz that `scipy.sparse.load_npz` opens.

    Args:
        arrays: receives `data` float32 and `indices` int32, the values and their columns, row by row; `indptr` int64
            [texts + 1], where each row begins in them; `shape` and `format`.
        size: how many of each vector's largest values to keep; None for all.
    """

    def __init__(self, arrays: NpzWriter, size: int | None) -> None:
        self._arrays, self._size = arrays, size
        self._shape, self._values = [0, 0], 0

    def append(self, vectors: Any) -> None:
        """Adds vectors, a `csr_array` float32 [rows, width]."""
        vectors = shorten(vectors, self._size)
        if not self._shape[0]:
            self._arrays.append("indptr", np.zeros(1, "int64"))
        self._arrays.append("data", vectors.data)
        self._arrays.append("indices", vectors.indices.astype("int32"))
        self._arrays.append("indptr", self._values + vectors.indptr[1:].astype("int64"))
        self._values += len(vectors.data)
        self._shape = [self._shape[0] + vectors.shape[0], vectors.shape[1]]

    def finish(self) -> None:
        """Writes `shape` and `format`; call it after the last vectors."""
        self._arrays.put("shape", np.array(self._shape, "int64"))
        self._arrays.put("format", np.array(b"csr"))

    @property
    def written(self) -> tuple[tuple[int, ...], str]:
        """The shape and the dtype of the written vectors."""
        return tuple(self._shape), self._arrays.dtypes["data"].name


def read_ranges(path: str) -> np.ndarray:
    """The `ranges` float32 [2, width] of an .npz with int8 vectors.

    Raises:
        UserError: the file cannot be read or has no ranges.
    """
    needs = f"{path}: needs an .npz that embed --precision int8 has written."
    try:
        with open_arrays(path) as arrays:
            names, ranges = arrays.names, arrays["ranges"] if "ranges" in arrays else None
    except (OSError, DamagedArrays) as error:
        raise UserError(f"{needs} Received: {reason(error)}. Give the file of the documents.") from error
    if ranges is None or ranges.ndim != 2 or len(ranges) != 2 or ranges.dtype.kind != "f":
        received = "ranges of another form" if ranges is not None else f"arrays {', '.join(names)}"
        raise UserError(f"{needs} Received: {received}. Give the file of the documents.")
    return ranges
