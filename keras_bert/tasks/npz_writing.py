"""Writes NumPy's .npz piece by piece."""

import contextlib
import shutil
import tempfile
import zipfile
from types import TracebackType
from typing import IO

import numpy as np
from numpy.lib import format as npy

from keras_bert.errors import UserError
from keras_bert.files import is_folder, is_remote, make_folder, parent
from keras_bert.whole_files import atomic_write

_COPIED_AT_ONCE = 1 << 22  # Bytes.


class NpzWriter:
    """Writes arrays that grow row by row, without holding more in memory than what is being appended.

    An array's length comes before its rows in the file, so the rows wait in unnamed files: beside the .npz or, if that
    is in a store, in this machine's temporary folder. The complete .npz appears when the `with` block ends without an
    error.

    Args:
        path: the file to write; its folder is created.

    Raises:
        UserError: the path is a folder.
    """

    def __init__(self, path: str):
        self._path = path
        self._folder = None if is_remote(path) else parent(path)
        self._streams: dict[str, IO[bytes]] = {}
        self._dtypes: dict[str, np.dtype] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        if is_folder(path):
            raise UserError(f"{path}: needs a file to write. Received: a folder. Name a file in it.")
        make_folder(parent(path))

    def __enter__(self) -> "NpzWriter":
        self._files = contextlib.ExitStack()
        return self

    def append(self, name: str, rows: np.ndarray) -> None:
        """Adds rows [rows, …] to the array `name`; all calls must use the same dtype and the same row shape."""
        if name not in self._streams:
            self._streams[name] = self._files.enter_context(tempfile.TemporaryFile(dir=self._folder))
            self._dtypes[name] = rows.dtype
            self._shapes[name] = (0, *rows.shape[1:])
        self._streams[name].write(np.ascontiguousarray(rows).data)
        count, *row_shape = self._shapes[name]
        self._shapes[name] = (count + len(rows), *row_shape)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of the array `name` so far."""
        return self._shapes[name]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._files:
            if kind is None:
                with atomic_write(self._path, "wb") as stream:
                    self._write(stream)

    def _write(self, stream: IO[bytes]) -> None:
        with zipfile.ZipFile(stream, "w") as archive:
            for name, rows in self._streams.items():
                descr = npy.dtype_to_descr(self._dtypes[name])
                header = {"descr": descr, "fortran_order": False, "shape": self._shapes[name]}
                rows.seek(0)
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    npy.write_array_header_1_0(member, header)
                    shutil.copyfileobj(rows, member, _COPIED_AT_ONCE)
