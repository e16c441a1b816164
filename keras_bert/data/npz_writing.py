"""NumPy's .npz, written piece by piece."""

import contextlib
import shutil
import tempfile
import zipfile

import numpy as np
from numpy.lib import format as npy

from keras_bert.errors import UserError
from keras_bert.files import atomic_write, is_folder, is_remote, make_folder, parent

_COPIED_AT_ONCE = 1 << 22  # Bytes.


class NpzWriter:
    """Arrays that grow row by row, of which memory never holds more than what is appended.

    As their lengths stand before their rows in the file, the rows wait in unnamed files beside it, or, of a .npz in a
    store, in this machine's temporary folder. The .npz takes its place, whole, when the `with` block ends without an
    error.

    Args:
        path: the file to write; its folder is made.

    Raises:
        UserError: the path is a folder.
    """

    def __init__(self, path):
        self._path = path
        self._folder = None if is_remote(path) else parent(path)
        self._waiting = {}
        if is_folder(path):
            raise UserError(f"{path}: needs a file to write. Received: a folder. Name a file in it.")
        make_folder(parent(path))

    def __enter__(self):
        self._files = contextlib.ExitStack()
        return self

    def append(self, name, rows):
        """Adds rows, an array [rows, …], to the array `name`; each call gives the same type and the same row shape."""
        if name not in self._waiting:
            stream = self._files.enter_context(tempfile.TemporaryFile(dir=self._folder))
            self._waiting[name] = [stream, rows.dtype, 0, rows.shape[1:]]
        waiting = self._waiting[name]
        waiting[0].write(np.ascontiguousarray(rows).data)
        waiting[2] += len(rows)

    def shape(self, name):
        """Of the array `name`, as far as it has grown."""
        _, _, count, row_shape = self._waiting[name]
        return (count, *row_shape)

    def __exit__(self, kind, error, traceback):
        with self._files:
            if kind is None:
                with atomic_write(self._path, "wb") as stream:
                    self._write(stream)

    def _write(self, stream):
        with zipfile.ZipFile(stream, "w") as archive:
            for name, (rows, dtype, count, row_shape) in self._waiting.items():
                header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": (count, *row_shape)}
                rows.seek(0)
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    npy.write_array_header_1_0(member, header)
                    shutil.copyfileobj(rows, member, _COPIED_AT_ONCE)
