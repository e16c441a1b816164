"""Remote files through `tf.io.gfile`, with Python's own streams and errors.

`keras_bert.core.files` decides which paths are remote. TensorFlow is imported on first use.
"""

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from keras_bert.core.runtime import import_tensorflow

if TYPE_CHECKING:
    import tensorflow as tf
    from _typeshed import ReadableBuffer, WriteableBuffer

_BUFFER_BYTES = 1 << 20
_WRITTEN_AT_ONCE = 1 << 24  # Bytes: TensorFlow needs a copy of what it writes.

# errno by TensorFlow's error code (tensorflow/core/protobuf/error_codes.proto).
_ERRNO = {
    4: errno.ETIMEDOUT,  # DEADLINE_EXCEEDED
    5: errno.ENOENT,
    6: errno.EEXIST,
    7: errno.EACCES,
    8: errno.ENOSPC,  # RESOURCE_EXHAUSTED
    12: errno.ENOTSUP,  # UNIMPLEMENTED
    14: errno.EAGAIN,  # UNAVAILABLE
    16: errno.EACCES,  # UNAUTHENTICATED
}
# For a disk, TensorFlow's message is more specific than its code.
_ERRNO_BY_TEXT = {
    os.strerror(number).lower(): number
    for number in (
        errno.EACCES,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EISDIR,
        errno.EMFILE,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOSPC,
        errno.ENOTDIR,
        errno.ENOTEMPTY,
        errno.EPERM,
        errno.EROFS,
    )
}


def call(name: str, path: str | os.PathLike[str], *args: Any, **options: Any) -> Any:
    """`tf.io.gfile.<name>(path, ...)`. Raises `OSError`."""
    if "tensorflow" not in sys.modules:
        import_tensorflow()
    import tensorflow as tf

    with as_os_errors(path):
        return getattr(tf.io.gfile, name)(path, *args, **options)


def require_bucket(path: str | os.PathLike[str]) -> None:
    """Raises `FileNotFoundError` if a path's bucket does not exist: TensorFlow's `makedirs` would loop forever.

    It walks up to the nearest existing folder, and the parent of a bucket's "/" is that "/" again.
    """
    scheme, _, rest = os.fspath(path).partition("://")
    bucket = rest.partition("/")[0]
    if bucket and scheme != "ram" and not call("exists", f"{scheme}://{bucket}/"):
        raise FileNotFoundError(errno.ENOENT, f"There is no {scheme}://{bucket}", os.fspath(path))


@contextlib.contextmanager
def as_os_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns TensorFlow's errors into the matching `OSError` (`FileNotFoundError`, …) that names `path`.

    Also for blocks in which TensorFlow itself reads or writes a user's path, remote or not.
    """
    try:
        yield
    except Exception as error:
        # If TensorFlow is not imported, the error is not one of its own.
        if "tensorflow" not in sys.modules or not isinstance(error, sys.modules["tensorflow"].errors.OpError):
            raise
        raise os_error(error, path) from error


def os_error(error: "tf.errors.OpError", path: str | os.PathLike[str]) -> OSError:
    """The `OSError` for one of TensorFlow's errors: errno, a one-line message, and `path` as its filename."""
    lines = (error.message or "").strip().splitlines()
    line = lines[0].partition(" with body ")[0].removesuffix(".") if lines else ""
    number = next((number for text, number in _ERRNO_BY_TEXT.items() if text in line.lower()), None)
    if number is not None:
        return OSError(number, os.strerror(number), os.fspath(path))
    number = _ERRNO.get(error.error_code, errno.EIO)
    if number == errno.ENOTSUP and "scheme" in line:
        line = f"TensorFlow has no file system for {os.fspath(path).partition('://')[0]}://"
    elif number in (errno.ENOENT, errno.EACCES):
        line = f"{os.strerror(number)} ({line})" if line else ""  # Google's store says 404.
    return OSError(number, line or os.strerror(number), os.fspath(path))


def open_stream(
    path: str | os.PathLike[str], mode: str = "rb", errors: str | None = None, newline: str | None = None
) -> io.BufferedReader | io.BufferedWriter | io.TextIOWrapper:
    """Opens a remote path as `open` would: a standard stream with all its methods.

    Writing is sequential, without seeking, and visible once the stream is closed or flushed. An object store uploads
    the whole file at each flush.

    Args:
        mode: `r`, `w` or `a`, with a `b` for bytes; text is UTF-8.
        errors, newline: as for `open`.

    Raises:
        OSError: the store failed, here or in a later call of the stream.
    """
    raw = _RawFile(path, mode.replace("b", "").replace("t", ""))
    stream: io.BufferedWriter | io.BufferedReader
    stream = _Writer(raw, _BUFFER_BYTES) if raw.writable() else io.BufferedReader(raw, _BUFFER_BYTES)
    return stream if "b" in mode else io.TextIOWrapper(stream, "utf-8", errors, newline)


class _RawFile(io.RawIOBase):
    """A `tf.io.gfile.GFile` as the raw file under Python's own streams."""

    def __init__(self, path: str | os.PathLike[str], mode: str) -> None:
        if mode not in ("r", "w", "a"):
            raise ValueError(f"mode: needs r, w or a. Received: {mode!r}.")
        self.name = os.fspath(path)
        self._mode = mode
        # GFile opens on first use, and Google's store even later; a failure to open must be reported now.
        if mode == "r":
            if call("stat", self.name).is_directory:
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self.name)
        elif mode == "w" and self.name.startswith("ram://"):
            _empty_in_memory(self.name)
        self._file = call("GFile", self.name, f"{mode}b")
        if mode != "r":
            with as_os_errors(self.name):
                self._file.write(b"")

    def readable(self) -> bool:
        return self._mode == "r"

    def writable(self) -> bool:
        return self._mode != "r"

    def seekable(self) -> bool:
        return self._mode == "r"

    def readinto(self, buffer: "WriteableBuffer") -> int:
        buffer = memoryview(buffer)
        with as_os_errors(self.name):
            content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with as_os_errors(self.name):
            self._file.seek(offset, whence)
            return self._file.tell()

    def write(self, content: "ReadableBuffer") -> int:
        content = bytes(memoryview(content).cast("B")[:_WRITTEN_AT_ONCE])
        with as_os_errors(self.name):
            self._file.write(content)
        return len(content)

    def flush(self) -> None:
        if not self.closed:
            with as_os_errors(self.name):
                self._file.flush()

    def close(self) -> None:
        if not self.closed:
            try:
                with as_os_errors(self.name):
                    self._file.close()
            finally:
                super().close()


def _empty_in_memory(path: str) -> None:
    """Removes a ram:// file, because TensorFlow appends to an existing one whatever the mode."""
    with contextlib.suppress(FileNotFoundError):
        if not call("stat", path).is_directory:
            call("remove", path)


class _Writer(io.BufferedWriter):
    """A writer that flushes the raw file too, which Python's own does not."""

    def flush(self) -> None:
        super().flush()
        self.raw.flush()
