"""Users' paths, on a disk or on any store: opening, listing, naming, copying and removing.

Only this module and `core/patterns.py` know what a path is. A plain path goes through the standard library and does not
import TensorFlow. A path with a scheme (`gs://`, `file://`, …) belongs to a store and goes through `tf.io.gfile`. Every
failure, remote or not, is an `OSError` with the path as its `filename`.
"""

import contextlib
import hashlib
import io
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import IO, Any, BinaryIO, Literal, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from keras_bert.core import disks, stores
from keras_bert.core.errors import UserError

StrPath: TypeAlias = str | os.PathLike[str]
_T = TypeVar("_T")

_COPIED_AT_ONCE = 1 << 22  # Bytes.
_BLOCKS, _BLOCK = 16, 4096  # The number of blocks that `content_mark` reads, and their bytes.
_ASKED_AT_ONCE = 16  # Requests to a store, each a round trip over the network.


def is_remote(path: StrPath) -> bool:
    """Whether a path has a scheme, and so goes through `tf.io.gfile`."""
    return "://" in os.fspath(path)


@overload
def open_file(path: StrPath, mode: Literal["rb", "wb", "ab"] = "rb") -> BinaryIO: ...
@overload
def open_file(path: StrPath, mode: str, errors: str | None = None, newline: str | None = None) -> IO[Any]: ...
def open_file(path: StrPath, mode: str = "rb", errors: str | None = None, newline: str | None = None) -> IO[Any]:
    """Opens `path` for reading (`r`), writing (`w`) or appending (`a`); text is UTF-8.

    Binary by default: decoding is the caller's decision. A stream that writes to a store cannot seek.
    """
    stream: IO[Any]
    if is_remote(path):
        stream = stores.open_stream(path, mode, errors, newline)
    else:
        stream = _open_named(path, mode, errors, newline)
    if mode == "rb":
        for reference in _readings.keyrefs():  # A copy: another thread may begin or end a reading meanwhile.
            if reading := reference():
                reading.opened(os.fspath(path), stream)
    return stream


def content(path: StrPath) -> bytes:
    """All bytes of a file."""
    with open_file(path) as stream:
        return stream.read()


def _open_named(path: StrPath, mode: str, errors: str | None, newline: str | None) -> IO[Any]:
    """As `open`, but also later failures, such as a write to a full disk, name the file."""
    raw = _NamedFile(os.fspath(path), mode.strip("bt"))
    stream = io.BufferedReader(raw) if raw.readable() else io.BufferedWriter(raw)
    return stream if "b" in mode else io.TextIOWrapper(stream, "utf-8", errors, newline, raw.isatty())


class _NamedFile(io.FileIO):
    def readinto(self, buffer: Any) -> int:
        with self._named():
            return super().readinto(buffer)

    def readall(self) -> bytes:
        with self._named():
            return super().readall()

    def write(self, content: Any) -> int:
        with self._named():
            return super().write(content)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            error.filename = self.name
            raise


def read_file(path: StrPath, remedy: str) -> bytes:
    """The content of a file. Raises `UserError`, which ends with the remedy, if it cannot be read."""
    try:
        return content(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}). {remedy}".rstrip()) from None


class BytesRead:
    """The progress of reading files that `open_file` opens one after the other.

    For a compressed file, the compressed bytes count.

    Args:
        paths: the files, in this order.

    Attributes:
        total: the bytes of all files; None without files or if a size is unknown, as for a pipe.
    """

    total: int | None

    def __init__(self, paths: Sequence[str]):
        sizes = [found for found in map_paths(_file_size, paths) if found is not None]
        self.total = sum(sizes) if sizes and len(sizes) == len(paths) else None
        self._places = {path: (end - size, end) for path, size, end in zip(paths, sizes, accumulate(sizes))}
        self._stream: IO[Any] | None = None
        self._begin = self._end = 0
        _readings[self] = None

    def opened(self, path: str, stream: IO[Any]) -> None:
        if path in self._places:
            self._stream, (self._begin, self._end) = stream, self._places[path]

    def position(self) -> int:
        """The bytes of the files before the latest one, and its own up to the position of its stream."""
        try:
            return self._begin + self._stream.tell() if self._stream else 0
        except ValueError:  # It is closed.
            return self._end


_readings: weakref.WeakKeyDictionary[BytesRead, None] = weakref.WeakKeyDictionary()


def _file_size(path: str) -> int | None:
    return size(path) if is_remote(path) or os.path.isfile(path) else None


def exists(path: StrPath) -> bool:
    """Whether there is a file or a folder."""
    return _stat(path) is not None if is_remote(path) else os.path.exists(path)


def is_file(path: StrPath) -> bool:
    if is_remote(path):
        found = _stat(path)
        return found is not None and not found.is_directory
    return os.path.isfile(path)


def is_folder(path: StrPath) -> bool:
    if is_remote(path):
        found = _stat(path)
        return found is not None and found.is_directory
    return os.path.isdir(path)


def is_stream(path: StrPath) -> bool:
    """Whether this is a device or a pipe, such as /dev/null, which no file may replace."""
    if is_remote(path) or not os.path.exists(path) or os.path.isdir(path):
        return False
    # /dev/stdout may be a link to a file.
    return not os.path.isfile(path) or os.path.dirname(os.path.abspath(path)) == "/dev"


def size(path: StrPath) -> int | None:
    """The size of a file in bytes, or None if it cannot be determined."""
    try:
        return stores.call("stat", path).length if is_remote(path) else os.path.getsize(path)
    except OSError:
        return None


def modified(path: StrPath) -> float:
    """The modification time of a file, in seconds since 1970."""
    return stores.call("stat", path).mtime_nsec / 1e9 if is_remote(path) else os.path.getmtime(path)


def _stat(path: StrPath) -> Any:  # TensorFlow's FileStatistics.
    """The statistics of a remote path, None if there is nothing."""
    try:
        return stores.call("stat", path)
    except FileNotFoundError:
        return None


def join(folder: StrPath, *names: str) -> str:
    return os.path.join(os.fspath(folder), *names)


def parent(path: StrPath) -> str:
    """The folder that contains a path; "." for a plain name."""
    path = os.fspath(path)
    if is_remote(path):
        scheme, _, rest = path.partition("://")
        return f"{scheme}://{os.path.dirname(rest.rstrip('/'))}"
    return os.path.dirname(path.rstrip("/") or path) or "."


def real(path: StrPath) -> str:
    """One name for all spellings of a path: on a disk absolute, with links followed and without `file://`."""
    path = os.fspath(path).removeprefix("file://")
    return path.rstrip("/") if is_remote(path) else os.path.realpath(path)


def shown(path: StrPath) -> str:
    """A path for messages: relative to the working folder, or unchanged if remote."""
    return os.fspath(path) if is_remote(path) else os.path.relpath(path)


def list_folder(path: StrPath) -> list[str]:
    """The names in a folder, sorted; empty if it does not exist."""
    try:
        names = stores.call("listdir", path) if is_remote(path) else os.listdir(path)
    except FileNotFoundError:
        return []
    if not is_remote(path):
        return sorted(names)
    names = {name.rstrip("/") for name in names} - {""}  # Object stores mark folders with "/".
    if os.fspath(path).startswith("ram://"):
        # TensorFlow's ram:// compares prefixes: the folder `run` seems to contain the files of `run-2`.
        names = {name for name in names if exists(join(path, name))}
    return sorted(names)


def files_below(folder: StrPath) -> list[str]:
    """The paths of all files in a folder and its subfolders, sorted."""
    if not is_remote(folder):
        return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)
    paths = [join(folder, name) for name in list_folder(folder)]
    found: list[str] = []
    for path, below in zip(paths, map_paths(is_folder, paths)):
        found += files_below(path) if below else [path]
    return sorted(found)


def make_folder(path: StrPath) -> None:
    """Makes a folder and its parents unless they exist."""
    if is_remote(path):
        stores.require_bucket(path)
        stores.call("makedirs", path)
    else:
        disks.make_folder(path)


def require_writable(path: StrPath) -> None:
    """Raises `OSError` if nothing can be made at `path`; leaves nothing behind. In a store, checks only the bucket."""
    if is_remote(path):
        stores.require_bucket(path)
        return
    if is_stream(path) and os.access(path, os.W_OK):
        return
    # The name may be invalid, too long for what is made beside it meanwhile, or a file where a folder is needed.
    for name in (path, f"{os.fspath(path).rstrip('/')}{disks.REPLACED}"):
        with contextlib.suppress(FileNotFoundError):
            os.lstat(name)
    folder = os.path.abspath(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    with tempfile.TemporaryFile(dir=folder):
        pass


def remove_folder(path: StrPath) -> None:
    """Removes a folder and its contents as far as possible."""
    if is_remote(path):
        with contextlib.suppress(OSError):
            remove_tree(path)
    else:
        disks.remove_tree(path)


def remove_file(path: StrPath) -> None:
    """Removes a file if it exists."""
    with contextlib.suppress(FileNotFoundError):
        if is_remote(path):
            stores.call("remove", path)
        else:
            os.unlink(path)


def remove_tree(path: StrPath) -> None:
    """Removes a folder of a store; nothing happens if it is not there."""
    # It was never there, or someone else removed it; Google's store reports the former as NotADirectoryError.
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        stores.call("rmtree", path)


def copy_folder(source: StrPath, target: StrPath) -> None:
    """Copies the files of a folder and its subfolders into another, which may be on another store or disk."""
    first = len(join(source, ""))
    for path in files_below(source):
        copied = join(target, path[first:])
        make_folder(parent(copied))
        with open_file(path) as stream, open_file(copied, "wb") as written:
            shutil.copyfileobj(stream, written, _COPIED_AT_ONCE)


def sha256(path: StrPath) -> str:
    """The SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with open_file(path) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def content_mark(path: StrPath) -> str | float | None:
    """A cheap mark that changes if a file is rewritten to the same size; None if it is empty or cannot be read.

    On a disk, a digest of blocks spread over the file (all of it up to 64 KiB), because a copy may keep the original's
    modification time. In a store, the modification time, which no copy keeps there and which takes a single request.
    """
    try:
        if is_remote(path):
            return modified(path)
        digest, length = hashlib.blake2b(digest_size=8), os.path.getsize(path)
        if not length:  # A pipe too, which must not be read twice.
            return None
        with open(path, "rb", buffering=0) as stream:
            for number in range(_BLOCKS):
                stream.seek(max(length - _BLOCK, 0) * number // (_BLOCKS - 1))
                digest.update(stream.read(_BLOCK))
        return digest.hexdigest()
    except OSError:
        return None


@contextlib.contextmanager
def local_copy(path: StrPath) -> Iterator[str]:
    """The name of a local file with the content of `path`: itself or, if remote, a copy that the block's end removes.

    For libraries that open files by name. A memory map of the copy outlives the block.
    """
    if not is_remote(path):
        yield os.fspath(path)
        return
    with _temporary(path) as local:
        with open_file(path) as stream, open(local, "wb") as copy:
            shutil.copyfileobj(stream, copy, _COPIED_AT_ONCE)
        yield local


@contextlib.contextmanager
def written_locally(path: StrPath) -> Iterator[str]:
    """The name of a local file to write, which is copied to `path`, if remote, when the block ends without an error.

    For libraries that write files by name, or not sequentially.
    """
    if not is_remote(path):
        yield os.fspath(path)
        return
    with _temporary(path) as local:
        yield local
        with open(local, "rb") as written, open_file(path, "wb") as stream:
            shutil.copyfileobj(written, stream, _COPIED_AT_ONCE)


@contextlib.contextmanager
def _temporary(path: StrPath) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, os.path.basename(os.fspath(path)))


def mapped(path: StrPath) -> npt.NDArray[np.uint8]:
    """The content of a file, [bytes], read-only and memory-mapped; a remote file is fetched first."""
    with local_copy(path) as local:
        if os.path.getsize(local):
            return np.memmap(local, np.uint8, mode="r")
    return np.frombuffer(b"", np.uint8)  # A memory map cannot be empty.


def map_paths(function: Callable[[str], _T], paths: Sequence[str]) -> list[_T]:
    """`function(path)` for each path, in order; for remote paths in parallel."""
    if not paths or not is_remote(paths[0]):
        return [function(path) for path in paths]
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as threads:
        return list(threads.map(function, paths))
