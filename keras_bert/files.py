"""Opening users' paths, local or remote, and writing files that are whole or absent.

Local paths go through the standard library, so that nothing here imports TensorFlow for
them; `gs://` and the like go through `tf.io.gfile`.
"""

import contextlib
import glob as local_glob
import hashlib
import json
import os
import shutil

import numpy as np

from keras_bert.errors import UserError


def is_remote(path):
    return "://" in os.fspath(path)


def _gfile():
    import tensorflow as tf

    return tf.io.gfile


def open_file(path, mode="rb", **options):
    """Opens `path`. Bytes by default: text decoding is the caller's decision."""
    if is_remote(path):
        return _gfile().GFile(path, mode)
    return open(path, mode, **options)


def exists(path):
    return _gfile().exists(path) if is_remote(path) else os.path.exists(path)


def size(path):
    """Bytes of a file, or None where it cannot be told."""
    try:
        return _gfile().stat(path).length if is_remote(path) else os.path.getsize(path)
    except OSError:
        return None


def join(folder, *names):
    return os.path.join(os.fspath(folder), *names)


def list_folder(path):
    """Sorted names in a folder; empty where the folder does not exist."""
    if not exists(path):
        return []
    return sorted(_gfile().listdir(path) if is_remote(path) else os.listdir(path))


def make_folder(path):
    if is_remote(path):
        _gfile().makedirs(path)
    else:
        os.makedirs(path, exist_ok=True)


def remove_folder(path):
    if is_remote(path):
        if _gfile().exists(path):
            _gfile().rmtree(path)
    else:
        shutil.rmtree(path, ignore_errors=True)


def remove_file(path):
    """Removes a file; one that is not there is no error."""
    if exists(path):
        if is_remote(path):
            _gfile().remove(path)
        else:
            os.unlink(path)


def rename(source, target):
    if is_remote(target):
        _gfile().rename(source, target)
    else:
        os.rename(source, target)


def sha256(path):
    """The SHA-256 of a file's bytes, hex."""
    digest = hashlib.sha256()
    with open_file(path) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def mapped(path):
    """A file's bytes, a read-only uint8 array: mapped into memory where the file is local, read where it is remote."""
    if is_remote(path):
        with open_file(path) as stream:
            return np.frombuffer(stream.read(), np.uint8)
    return np.memmap(path, np.uint8, mode="r") if size(path) else np.empty(0, np.uint8)


def expand(patterns):
    """Every file that the patterns name, in the order given and sorted within each.

    A folder stands for all files below it. Raises `UserError` for a pattern that names nothing.
    """
    found = []
    for pattern in patterns:
        if is_remote(pattern):
            matches = sorted(_gfile().glob(pattern))
        elif os.path.isdir(pattern):
            matches = sorted(os.path.join(folder, name) for folder, _, names in os.walk(pattern) for name in names)
        else:
            matches = sorted(local_glob.glob(pattern, recursive=True))
        matches = [match for match in matches if is_remote(match) or os.path.isfile(match)]
        if not matches:
            raise UserError(f"No file matches {pattern!r}. Give a file, a folder or a quoted glob that exists.")
        found.extend(matches)
    return list(dict.fromkeys(found))


@contextlib.contextmanager
def atomic_write(path, mode="w"):
    """Opens a file beside `path` that takes its name only when the block ends without an error."""
    path = os.fspath(path)
    aside = f"{path}.partial"
    options = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with open_file(aside, mode, **options) as stream:
            yield stream
            if not is_remote(path):
                stream.flush()
                os.fsync(stream.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise
    if is_remote(path):
        _gfile().rename(aside, path, overwrite=True)
    else:
        os.replace(aside, path)


@contextlib.contextmanager
def whole_folder(path):
    """Makes a folder beside `path` that takes its name, and its place, only when the block ends without an error."""
    aside = f"{os.fspath(path).rstrip('/')}.partial"
    remove_folder(aside)
    make_folder(aside)
    try:
        yield aside
    except BaseException:
        remove_folder(aside)
        raise
    remove_folder(path)
    rename(aside, path)


def write_json(path, values):
    with atomic_write(path) as stream:
        stream.write(json.dumps(values, indent=2) + "\n")
