"""Reads the arrays that NumPy saved, without pickles; any fault of a file raises the same exception. Writes an .npy."""

import contextlib
import io
import tokenize
import zipfile
import zlib
from collections.abc import Iterator

import numpy as np

from keras_bert.core.errors import reason
from keras_bert.core.files import StrPath, content, open_file
from keras_bert.core.whole_files import atomic_write

# A header is a Python literal, which NumPy tokenizes and parses; its shape may be of any size.
_RAISED = (
    ArithmeticError,
    EOFError,
    KeyError,
    MemoryError,
    RuntimeError,  # An archive that is encrypted, or compressed in another way.
    SyntaxError,
    TypeError,
    ValueError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


class DamagedArrays(Exception):
    """A file is damaged or was not saved by NumPy. The message says what is wrong, in one line without the file."""


class Arrays:
    """The arrays of an open .npz, each read when it is asked for, which may raise `DamagedArrays`."""

    def __init__(self, archive: "np.lib.npyio.NpzFile"):
        self._archive = archive
        self.names = archive.files

    def __getitem__(self, name: str) -> np.ndarray:
        with _refusing():
            return self._archive[name]

    def __contains__(self, name: str) -> bool:
        return name in self.names


@contextlib.contextmanager
def open_arrays(path: StrPath) -> Iterator[Arrays]:
    """Opens an .npz. Raises `DamagedArrays`, or `OSError` if the file cannot be read."""
    with open_file(path) as stream:
        with _refusing():
            if stream.read(2) not in (b"PK", b"\x93N"):  # NumPy would call it a pickle, and say how to load that.
                raise ValueError("no arrays that NumPy saved")
            stream.seek(0)
            found = np.load(stream, allow_pickle=False)
        if isinstance(found, np.ndarray):
            raise DamagedArrays("a single array")
        with found:
            yield Arrays(found)


def read_array(path: StrPath) -> np.ndarray:
    """The array of an .npy. Raises `DamagedArrays`, or `OSError` if the file cannot be read."""
    stream = io.BytesIO(content(path))
    with _refusing():
        return np.lib.format.read_array(stream, allow_pickle=False)


def write_array(path: StrPath, array: np.ndarray, work_folder: str | None = None) -> None:
    """Writes an .npy; see `atomic_write`. `np.save` may lose what a full disk answers, and leave a part of the file."""
    array = np.ascontiguousarray(array)
    with atomic_write(path, "wb", work_folder) as stream:
        np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
        stream.write(array.data)


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except _RAISED as error:
        raise DamagedArrays(reason(error)) from None
