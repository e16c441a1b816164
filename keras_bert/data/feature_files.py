"""Features of tokens on disk: computed once, and read by training from where they lie.

A file of features is a folder with `features.npy`, float32 [tokens, layers, hidden], which NumPy opens too, and
`made_of.json`: what it was made of, and the .npy's SHA-256.
"""

import contextlib
import hashlib
import json
import math
import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from numpy.lib import format as npy

from keras_bert import files, locks
from keras_bert.errors import UserError

_FEATURES, _MADE_OF = "features.npy", "made_of.json"
_FORMAT = 1
_MAGIC = npy.magic(1, 0)
_ITEM = np.dtype("<f4")


class FeatureFile:
    """A finished file of features, mapped into memory.

    Attributes:
        path: the .npy.
        shape: (tokens, layers, hidden).
    """

    def __init__(self, path, shape, local):
        """`local` is the file's name on this machine, where it need not stay once it is mapped."""
        self.path, self.shape = path, tuple(shape)
        _, layers, hidden = self.shape
        # TensorFlow maps whole files. As the header is as long as some states, the file is all rows of one length.
        self._header_rows = len(_header(self.shape)) // (hidden * _ITEM.itemsize)
        with tf.device("CPU:0"):
            self._rows = tf.raw_ops.ImmutableConst(
                dtype=tf.float32,
                shape=[self._header_rows + math.prod(self.shape[:2]), hidden],
                memory_region_name=os.path.abspath(local),
            )
        self._layers = layers

    def read(self, places):
        """The features [..., layers, hidden] float32 of the tokens at `places`, an int64 tensor [...]."""
        layer = tf.range(self._layers, dtype=tf.int64)
        return tf.gather(self._rows, self._header_rows + places[..., None] * self._layers + layer)


class FeatureRoom:
    """The folder with the files of features of several runs.

    Args:
        path: the folder, which is made. Files in a store are made in this machine's temporary folder, and mapped from
            copies there.
    """

    def __init__(self, path):
        self.path = path
        files.make_folder(path)

    def alone(self, report):
        """A block in which no other process is for this folder; `report` takes a line where that must be waited for."""
        return locks.taken(files.join(self.path, locks.NAME), report)

    def folder(self, name, made_of):
        """Where the file named so and made of that stands."""
        digest = hashlib.sha256(json.dumps([_FORMAT, made_of], sort_keys=True).encode()).hexdigest()
        return files.join(self.path, f"{name}-{digest[:12]}")

    def open(self, name, made_of, shape, report):
        """The `FeatureFile`, or None where there is none that is whole; `report` takes a line on one that is not.

        Args:
            name: of the file, for people.
            made_of: plain mapping that tells it from others.
            shape: (tokens, layers, hidden).
        """
        folder = self.folder(name, made_of)
        if not files.exists(folder):
            return None
        path = files.join(folder, _FEATURES)
        try:
            digest = _digest_told(folder, made_of)
            if files.size(path) != feature_bytes(shape):
                raise _Unusable(f"{path}: has {files.size(path) or 0:,} bytes and needs {feature_bytes(shape):,}.")
            with files.local_copy(path) as local:
                if not _is_sound(local, shape, digest):
                    raise _Unusable(f"{path}: is damaged (its SHA-256 is not the one written with it).")
                return FeatureFile(path, shape, local)
        except _Unusable as fault:
            report(f"{fault} It is made anew.")
            return None

    def require_space(self, size):
        """Raises `UserError` where the disk has not so many bytes."""
        disk = tempfile.gettempdir() if files.is_remote(self.path) else self.path
        free = shutil.disk_usage(disk).free
        if size > free:
            raise UserError(
                f"{disk}: needs {megabytes(size)} for the features. Received: {megabytes(free)} that are free. "
                "Make room, or give a folder elsewhere: --set features.folder=DIR"
            )

    @contextlib.contextmanager
    def writing(self, name, made_of, shape):
        """Function (first token, states [tokens, layers, hidden]) that writes a part of a file.

        The file is there when the block ends without an error, and when all of it was written.

        Raises:
            UserError: it cannot be written (a full disk, …).
        """
        header = _header(shape)
        try:
            with files.whole_folder(self.folder(name, made_of), last=_MADE_OF) as aside:
                # The states come in no order; a store takes bytes in theirs alone.
                with files.written_locally(files.join(aside, _FEATURES)) as local:
                    with open(local, "wb") as stream:
                        stream.write(header)
                        yield _writer(stream, len(header), shape)
                    digest = files.sha256(local)
                said = {"format": _FORMAT, "made_of": made_of, "sha256": digest}
                files.write_json(files.join(aside, _MADE_OF), said)
        except OSError as error:
            raise UserError(
                f"{self.path}: the features cannot be written ({error.strerror or error}). "
                "Make room, or give a folder elsewhere: --set features.folder=DIR"
            ) from error


def feature_bytes(shape):
    """Of a file of this shape."""
    return len(_header(shape)) + math.prod(shape) * _ITEM.itemsize


def megabytes(size):
    """Bytes as people read them."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"


def _writer(stream, begin, shape):
    tokens, *of_token = shape
    token_bytes = math.prod(of_token) * _ITEM.itemsize

    def write(first, states):
        if list(states.shape[1:]) != of_token or not 0 <= first <= first + len(states) <= tokens:
            raise ValueError(f"states: need the shape of {shape} from {first} on. Received: {states.shape}.")
        stream.seek(begin + first * token_bytes)
        stream.write(np.ascontiguousarray(states, _ITEM).data)

    return write


def _header(shape):
    """The .npy's bytes before the array, as many as a whole number of states [hidden] have."""
    text = repr({"descr": _ITEM.str, "fortran_order": False, "shape": tuple(map(int, shape))}).encode()
    unit = int(shape[-1]) * _ITEM.itemsize
    length = -(-(len(_MAGIC) + 2 + len(text) + 1) // unit) * unit
    size = length - len(_MAGIC) - 2
    return _MAGIC + size.to_bytes(2, "little") + text.ljust(size - 1) + b"\n"


class _Unusable(Exception):
    """What is wrong with a file of features, in one sentence."""


def _digest_told(folder, made_of):
    """The SHA-256 that stands beside the features. Raises `_Unusable` where they are not made of that."""
    said = files.join(folder, _MADE_OF)
    try:
        with files.open_file(said) as stream:
            told = json.loads(stream.read())
    except (OSError, ValueError):
        raise _Unusable(f"{said}: cannot be read.") from None
    if not isinstance(told, dict) or told.get("format") != _FORMAT or told.get("made_of") != made_of:
        raise _Unusable(f"{folder}: is made of something else.")
    return told.get("sha256")


def _is_sound(local, shape, digest):
    header = _header(shape)
    with open(local, "rb") as stream:
        return stream.read(len(header)) == header and files.sha256(local) == digest
