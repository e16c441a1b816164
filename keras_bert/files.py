"""Users' paths: opening, listing and naming them, and writing files that are whole or absent.

The one room that knows what a path is. A plain path goes through the standard library, so that nothing here imports
TensorFlow for it. A path with a scheme (`gs://`, `file://`, …) is of a store and goes through `tf.io.gfile`. Whatever
goes wrong, in a store too, is an `OSError` with the path as its `filename`.

Stores know no renaming of folders that all can rely on: an object store copies a folder's files one by one. What is to
be found whole there is told by one of its files, which comes last and goes first; see `move_folder`.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from keras_bert import disks, stores

_COPIED_AT_ONCE = 1 << 22  # Bytes.
_ASKED_AT_ONCE = 16  # Paths of a store, whose answer takes a trip over the network each.


def is_remote(path):
    """Whether a path is of a store, to be reached through `tf.io.gfile` alone."""
    return "://" in os.fspath(path)


def open_file(path, mode="rb", errors=None, newline=None):
    """Opens `path` for reading (`r`), writing (`w`) or appending (`a`); text is UTF-8.

    Bytes by default: text decoding is the caller's decision. A stream that writes to a store cannot seek.
    """
    if is_remote(path):
        return stores.open_stream(path, mode, errors, newline)
    return open(path, mode, encoding=None if "b" in mode else "utf-8", errors=errors, newline=newline)


def exists(path):
    """Whether a file or a folder is there."""
    return _stat(path) is not None if is_remote(path) else os.path.exists(path)


def is_file(path):
    if is_remote(path):
        found = _stat(path)
        return found is not None and not found.is_directory
    return os.path.isfile(path)


def is_folder(path):
    if is_remote(path):
        found = _stat(path)
        return found is not None and found.is_directory
    return os.path.isdir(path)


def size(path):
    """Bytes of a file, or None where it cannot be told."""
    try:
        return stores.call("stat", path).length if is_remote(path) else os.path.getsize(path)
    except OSError:
        return None


def modified(path):
    """When a file was last written, in seconds since 1970."""
    return stores.call("stat", path).mtime_nsec / 1e9 if is_remote(path) else os.path.getmtime(path)


def _stat(path):
    """What a store says of a path, None where there is nothing."""
    try:
        return stores.call("stat", path)
    except FileNotFoundError:
        return None


def join(folder, *names):
    return os.path.join(os.fspath(folder), *names)


def parent(path):
    """The folder that a path stands in; "." for a plain name."""
    path = os.fspath(path)
    if is_remote(path):
        scheme, _, rest = path.partition("://")
        return f"{scheme}://{os.path.dirname(rest.rstrip('/'))}"
    return os.path.dirname(path.rstrip("/") or path) or "."


def shown(path):
    """A path for messages: from the working folder on, or a store's as it is."""
    return os.fspath(path) if is_remote(path) else os.path.relpath(path)


def list_folder(path):
    """Sorted names in a folder; empty where the folder does not exist."""
    try:
        names = stores.call("listdir", path) if is_remote(path) else os.listdir(path)
    except FileNotFoundError:
        return []
    if not is_remote(path):
        return sorted(names)
    names = {name.rstrip("/") for name in names} - {""}  # An object store marks folders so.
    if os.fspath(path).startswith("ram://"):
        # TensorFlow's memory goes by the beginning of names: the folder `run` seems to hold what is in `run-2`.
        names = {name for name in names if exists(join(path, name))}
    return sorted(names)


def files_below(folder):
    """The paths of all files in a folder and the folders in it, sorted."""
    if not is_remote(folder):
        return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)
    paths = [join(folder, name) for name in list_folder(folder)]
    found = []
    for path, below in zip(paths, ask(is_folder, paths)):
        found += files_below(path) if below else [path]
    return sorted(found)


def make_folder(path):
    """Makes a folder and those above it; one that is there is no error."""
    if is_remote(path):
        stores.require_bucket(path)
        stores.call("makedirs", path)
    else:
        disks.make_folder(path)


def remove_folder(path):
    """Removes a folder with all in it, as far as that can be done."""
    if is_remote(path):
        with contextlib.suppress(OSError):
            _remove_tree(path)
    else:
        disks.remove_tree(path)


def remove_file(path):
    """Removes a file; one that is not there is no error."""
    with contextlib.suppress(FileNotFoundError):
        if is_remote(path):
            stores.call("remove", path)
        else:
            os.unlink(path)


def remove_whole(path, last):
    """Removes a folder so that part of it, where that is left, does not look whole.

    Args:
        last: the file without which nobody takes the folder for whole.
    """
    if is_remote(path):
        remove_file(join(path, last))
        _remove_tree(path)
    else:
        disks.remove_whole(path)


def standing(path):
    """Where the folder `path` stands now: there, or, on a disk, where a kill left the old one while it was replaced."""
    return path if is_remote(path) else disks.standing(path)


def move_folder(source, target, last):
    """Gives a folder another name, in place of what has it.

    Args:
        source, target: paths in the same store, or on the same disk.
        last: the file in them without which nobody takes the folder for whole.

    On a disk all of it is synced before, and the old folder goes after; `standing` finds the old or the new one at any
    instant. In a store its files move one by one, because there a folder is no more than what their names have in
    common. `last` of the old folder is removed first and that of the new one comes last: who looks meanwhile finds
    the old folder, an unfinished one or the new one, never a mixture of both that looks whole. Ended on the way, part
    of the files stand under either name.
    """
    if not is_remote(target):
        disks.replace_folder(source, target)
        return
    remove_whole(target, last)
    first = len(join(source, ""))
    names = [path[first:] for path in files_below(source)]
    for folder in sorted({parent(join(target, name)) for name in names}):
        make_folder(folder)
    for name in sorted(names, key=lambda name: (name == last, name)):
        stores.call("rename", join(source, name), join(target, name), overwrite=True)
    remove_folder(source)


def _remove_tree(path):
    # Never there, or gone before its turn; the latter error is Google's for the former case.
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        stores.call("rmtree", path)


def copy_folder(source, target):
    """Copies the files of a folder, and of the folders in it, into another, from any store to any."""
    first = len(join(source, ""))
    for path in files_below(source):
        copied = join(target, path[first:])
        make_folder(parent(copied))
        with open_file(path) as stream, open_file(copied, "wb") as written:
            shutil.copyfileobj(stream, written, _COPIED_AT_ONCE)


def sha256(path):
    """The SHA-256 of a file's bytes, hex."""
    digest = hashlib.sha256()
    with open_file(path) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextlib.contextmanager
def local_copy(path):
    """The name of a file on this machine with the bytes of `path`: itself, or a copy as long as the block lasts.

    For libraries that open files by name. A map of the copy into memory outlives the block.
    """
    if not is_remote(path):
        yield os.fspath(path)
        return
    with _temporary(path) as local:
        with open_file(path) as stream, open(local, "wb") as copy:
            shutil.copyfileobj(stream, copy, _COPIED_AT_ONCE)
        yield local


@contextlib.contextmanager
def written_locally(path):
    """The name of a file on this machine to be written, whose bytes are at `path` when the block ends without an error.

    For libraries that write files by name, or not from the beginning to the end.
    """
    if not is_remote(path):
        yield os.fspath(path)
        return
    with _temporary(path) as local:
        yield local
        with open(local, "rb") as written, open_file(path, "wb") as stream:
            shutil.copyfileobj(written, stream, _COPIED_AT_ONCE)


@contextlib.contextmanager
def _temporary(path):
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, os.path.basename(os.fspath(path)))


def mapped(path):
    """The bytes of a file as an array, uint8 [bytes], read-only: mapped into memory, a store's after fetching it."""
    with local_copy(path) as local:
        if os.path.getsize(local):
            return np.memmap(local, np.uint8, mode="r")
    return np.frombuffer(b"", np.uint8)  # No map can be empty.


def ask(question, paths):
    """The answer for each path, in order; those of a store are asked for at the same time."""
    if not paths or not is_remote(paths[0]):
        return [question(path) for path in paths]
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as threads:
        return list(threads.map(question, paths))


@contextlib.contextmanager
def atomic_write(path, mode="w"):
    """Opens a file beside `path` that takes its name only when the block ends without an error.

    Who reads `path` meanwhile has the old file or the new one: a disk changes the name at once, an object store copies
    the finished file onto it and then drops the one beside it. The folder is made where it is not there.
    """
    path = os.fspath(path)
    aside = f"{path}.partial"
    newline = None if "b" in mode else "\n"
    try:
        with _opened_in_new_folder(aside, mode, newline) as stream:
            yield stream
            stream.flush()
            if not is_remote(path):
                os.fsync(stream.fileno())
        if is_remote(path):
            stores.call("rename", aside, path, overwrite=True)
        else:
            disks.rename_file(aside, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            remove_file(aside)
        if isinstance(error, OSError) and error.filename == aside:
            error.filename = path  # As the user knows it.
        raise


def _opened_in_new_folder(path, mode, newline):
    try:
        return open_file(path, mode, newline=newline)
    except FileNotFoundError:
        make_folder(parent(path))
        return open_file(path, mode, newline=newline)


@contextlib.contextmanager
def whole_folder(path, last):
    """Makes a folder beside `path` that takes its name, and its place, when the block ends without an error.

    `last` names the file that tells the folder for whole; see `move_folder`, which says what is seen on the way.
    """
    if is_file(path):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(path))
    aside = f"{os.fspath(path).rstrip('/')}.partial"
    remove_folder(aside)
    make_folder(aside)
    try:
        yield aside
    except BaseException:
        remove_folder(aside)
        raise
    move_folder(aside, path, last)


def write_json(path, values):
    with atomic_write(path) as stream:
        stream.write(json.dumps(values, indent=2) + "\n")
