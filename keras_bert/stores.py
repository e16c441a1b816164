"""What `tf.io.gfile` opens, with Python's own streams and errors.

`keras_bert.files` decides which paths come here. TensorFlow is imported at the first of them.
"""

import contextlib
import errno
import io
import os
import sys

from keras_bert.quiet import import_tensorflow

_BUFFER_BYTES = 1 << 20
_WRITTEN_AT_ONCE = 1 << 24  # Bytes: TensorFlow wants a copy of what it writes.

# TensorFlow's error codes (tensorflow/core/protobuf/error_codes.proto) that have an equal among the system's.
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
# Of a disk TensorFlow's message says more than its code.
_SAID = {
    os.strerror(number).lower(): number
    for number in (
        errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EISDIR, errno.EMFILE, errno.ENAMETOOLONG, errno.ENOENT,
        errno.ENOSPC, errno.ENOTDIR, errno.ENOTEMPTY, errno.EPERM, errno.EROFS,
    )
}  # fmt: skip


def call(name, path, *args, **options):
    """`tf.io.gfile.<name>(path, ...)`. Raises `OSError`."""
    if "tensorflow" not in sys.modules:
        import_tensorflow()
    import tensorflow as tf

    with as_os_errors(path):
        return getattr(tf.io.gfile, name)(path, *args, **options)


def require_bucket(path):
    """Raises `FileNotFoundError` where a path's bucket is not there: TensorFlow's `makedirs` then never ends.

    It looks for the nearest folder above that is there, and above a bucket's "/" is that "/" again.
    """
    scheme, _, rest = os.fspath(path).partition("://")
    bucket = rest.partition("/")[0]
    if bucket and scheme != "ram" and not call("exists", f"{scheme}://{bucket}/"):
        raise FileNotFoundError(errno.ENOENT, f"There is no {scheme}://{bucket}", os.fspath(path))


@contextlib.contextmanager
def as_os_errors(path):
    """Turns TensorFlow's errors into the `OSError` of their kind (`FileNotFoundError`, …) that names `path`.

    For the blocks, too, in which TensorFlow itself reads or writes a user's path, local or not.
    """
    try:
        yield
    except Exception as error:
        # Without TensorFlow there are none of its errors.
        if "tensorflow" not in sys.modules or not isinstance(error, sys.modules["tensorflow"].errors.OpError):
            raise
        raise os_error(error, path) from error


def os_error(error, path):
    """The `OSError` that says what a `tf.errors.OpError` says: errno, one line, and `path` as its filename."""
    lines = (error.message or "").strip().splitlines()
    line = lines[0].partition(" with body ")[0].removesuffix(".") if lines else ""
    number = next((number for text, number in _SAID.items() if text in line.lower()), None)
    if number is not None:
        return OSError(number, os.strerror(number), os.fspath(path))
    number = _ERRNO.get(error.error_code, errno.EIO)
    if number == errno.ENOTSUP and "scheme" in line:
        line = f"TensorFlow has no file system for {os.fspath(path).partition('://')[0]}://"
    elif number in (errno.ENOENT, errno.EACCES):
        line = f"{os.strerror(number)} ({line})" if line else ""  # Google's says 404.
    return OSError(number, line or os.strerror(number), os.fspath(path))


def open_stream(path, mode="rb", errors=None, newline=None):
    """`path` as `open` would open it: a stream of Python's with all its methods.

    What is written goes from the beginning to the end, without seeking, and is there when the stream is closed or
    flushed. An object store uploads the whole file at each flush.

    Args:
        mode: `r`, `w` or `a`, with a `b` for bytes; text is UTF-8.
        errors, newline: as for `open`.

    Raises:
        OSError: now or later, whatever the store says.
    """
    raw = _RawFile(path, mode.replace("b", "").replace("t", ""))
    stream = _Writer(raw, _BUFFER_BYTES) if raw.writable() else io.BufferedReader(raw, _BUFFER_BYTES)
    return stream if "b" in mode else io.TextIOWrapper(stream, "utf-8", errors, newline)


class _RawFile(io.RawIOBase):
    """A `tf.io.gfile.GFile` as the raw file that Python's own streams are built on."""

    def __init__(self, path, mode):
        if mode not in ("r", "w", "a"):
            raise ValueError(f"mode: needs r, w or a. Received: {mode!r}.")
        self.name = os.fspath(path)
        self._mode = mode
        # GFile opens at the first use, and Google's store asks later still; what cannot be opened is to be told now.
        if mode == "r":
            if call("stat", self.name).is_directory:
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self.name)
        elif mode == "w" and self.name.startswith("ram://"):
            _empty_in_memory(self.name)
        self._file = call("GFile", self.name, f"{mode}b")
        if mode != "r":
            with as_os_errors(self.name):
                self._file.write(b"")

    def readable(self):
        return self._mode == "r"

    def writable(self):
        return self._mode != "r"

    def seekable(self):
        return self._mode == "r"

    def readinto(self, buffer):
        with as_os_errors(self.name):
            content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def seek(self, offset, whence=io.SEEK_SET):
        with as_os_errors(self.name):
            self._file.seek(offset, whence)
            return self._file.tell()

    def write(self, content):
        content = bytes(memoryview(content).cast("B")[:_WRITTEN_AT_ONCE])
        with as_os_errors(self.name):
            self._file.write(content)
        return len(content)

    def flush(self):
        if not self.closed:
            with as_os_errors(self.name):
                self._file.flush()

    def close(self):
        if not self.closed:
            try:
                with as_os_errors(self.name):
                    self._file.close()
            finally:
                super().close()


def _empty_in_memory(path):
    """TensorFlow's memory adds to a file that is there, whatever the mode."""
    with contextlib.suppress(FileNotFoundError):
        if not call("stat", path).is_directory:
            call("remove", path)


class _Writer(io.BufferedWriter):
    """Python's own leaves what it flushes in the raw file."""

    def flush(self):
        super().flush()
        self.raw.flush()
