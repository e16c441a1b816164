"""Features of tokens on disk: computed once, then read by training directly from the file.

A feature file is a folder with `features.npy`, float32 [tokens, layers, hidden], which NumPy can open too, and
`made_of.json`, which holds what the features were made from and the SHA-256 of the .npy.
"""

import contextlib
import hashlib
import json
import logging
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO

import numpy as np
import tensorflow as tf
from numpy.lib import format as npy

from keras_bert.core import files, locks, whole_files
from keras_bert.core.errors import UserError, writing_remedy
from keras_bert.core.yaml_and_json import parse_json

_log = logging.getLogger(__name__)

_FEATURES, _MADE_OF = "features.npy", "made_of.json"
_FORMAT = 1
_MAGIC = npy.magic(1, 0)
_ITEM = np.dtype("<f4")


class FeatureFile:
    """A finished feature file, mapped into memory.

    Attributes:
        shape: (tokens, layers, hidden).
    """

    def __init__(self, path: str, shape: Sequence[int], local: str):
        """`local` is the file's path on this machine; the file may be deleted once it is mapped."""
        self.path, self.shape = path, tuple(shape)
        _, layers, hidden = self.shape
        # TensorFlow maps whole files. The header is padded to whole rows, so the file consists of rows of one length.
        self._header_rows = len(_header(self.shape)) // (hidden * _ITEM.itemsize)
        with tf.device("CPU:0"):
            self._rows = tf.raw_ops.ImmutableConst(
                dtype=tf.float32,
                shape=[self._header_rows + math.prod(self.shape[:2]), hidden],
                memory_region_name=os.path.abspath(local),
            )
        self._layers = layers

    def read(self, places: tf.Tensor) -> tf.Tensor:
        """The features float32 [..., layers, hidden] of the tokens with the indices `places`, int64 [...]."""
        layer = tf.range(self._layers, dtype=tf.int64)
        return tf.gather(self._rows, self._header_rows + places[..., None] * self._layers + layer)


class FeatureRoom:
    """The folder with the feature files of several runs.

    Args:
        path: the folder, created if needed. For a folder in a store, files are written in this machine's temporary
            folder first, and mapped from copies there.
        what: the name of the features in messages.
        setting: the setting that names the folder; None for none.
    """

    def __init__(self, path: str, what: str = "features", setting: str | None = "features.folder"):
        self.path = path
        self._what = what
        self._elsewhere = f", or use another folder: --set {setting}=DIR" if setting else ""
        files.make_folder(path)

    def alone(self) -> AbstractContextManager:
        """A block with exclusive access to this folder. A message says if it has to wait."""
        return locks.taken(files.join(self.path, locks.NAME))

    def folder(self, name: str, made_of: Mapping[str, object]) -> str:
        """The path of the feature file with this name and origin."""
        digest = hashlib.sha256(json.dumps([_FORMAT, made_of], sort_keys=True).encode()).hexdigest()
        return files.join(self.path, f"{name}-{digest[:12]}")

    def open(self, name: str, made_of: Mapping[str, object], shape: Sequence[int]) -> FeatureFile | None:
        """Opens a feature file; None if it does not exist or is damaged.

        Args:
            name: the readable part of the file's name.
            made_of: JSON values that identify what the features were computed from.
            shape: (tokens, layers, hidden).
        """
        folder = self.folder(name, made_of)
        if not files.exists(folder):
            return None
        path = files.join(folder, _FEATURES)
        try:
            digest = _recorded_digest(folder, made_of)
            if files.size(path) != feature_bytes(shape):
                raise _Unusable(f"{path}: has {files.size(path) or 0:,} bytes and needs {feature_bytes(shape):,}.")
            with files.local_copy(path) as local:
                if not _is_sound(local, shape, digest):
                    raise _Unusable(f"{path}: is damaged (its SHA-256 differs from the one written with it).")
                return FeatureFile(path, shape, local)
        except _Unusable as fault:
            _log.info(f"{fault} The {self._what} are computed again.")
            return None

    def require_space(self, size: int) -> None:
        """Raises `UserError` if the disk has fewer than `size` free bytes."""
        disk = tempfile.gettempdir() if files.is_remote(self.path) else self.path
        free = shutil.disk_usage(disk).free
        if size > free:
            raise UserError(
                f"{disk}: needs {megabytes(size)} for the {self._what}. Received: {megabytes(free)} of free space. "
                f"Free some space{self._elsewhere}"
            )

    @contextlib.contextmanager
    def writing(
        self, name: str, made_of: Mapping[str, object], shape: Sequence[int]
    ) -> Iterator[Callable[[int, np.ndarray], None]]:
        """A block that writes a file through a function (first token, states [tokens, layers, hidden]).

        The file appears when the block ends without an error; all its parts must have been written by then.

        Raises:
            UserError: it cannot be written (a full disk, …).
        """
        header = _header(shape)
        try:
            with whole_files.whole_folder(self.folder(name, made_of), last=_MADE_OF) as aside:
                # The states arrive in any order, but a store can only be written sequentially.
                with files.written_locally(files.join(aside, _FEATURES)) as local:
                    with open(local, "wb") as stream:
                        stream.write(header)
                        yield _writer(stream, len(header), shape)
                    digest = files.sha256(local)
                record = {"format": _FORMAT, "made_of": made_of, "sha256": digest}
                whole_files.write_json(files.join(aside, _MADE_OF), record)
        except OSError as error:
            raise UserError(
                f"{self.path}: the {self._what} cannot be written ({error.strerror or error}). "
                f"{writing_remedy(error)}{self._elsewhere}"
            ) from error


def feature_bytes(shape: Sequence[int]) -> int:
    """The size in bytes of a feature file of this shape (tokens, layers, hidden)."""
    return len(_header(shape)) + math.prod(shape) * _ITEM.itemsize


def megabytes(size: int) -> str:
    """A size in bytes as text, in MB or GB."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"


def _writer(stream: BinaryIO, begin: int, shape: Sequence[int]) -> Callable[[int, np.ndarray], None]:
    tokens, *token_shape = shape
    token_bytes = math.prod(token_shape) * _ITEM.itemsize

    def write(first: int, states: np.ndarray) -> None:
        if list(states.shape[1:]) != token_shape or not 0 <= first <= first + len(states) <= tokens:
            raise ValueError(f"states: need to fit into {tuple(shape)} from {first} on. Received: {states.shape}.")
        stream.seek(begin + first * token_bytes)
        stream.write(np.ascontiguousarray(states, _ITEM).data)

    return write


def _header(shape: Sequence[int]) -> bytes:
    """The bytes of the .npy before the array, padded to a whole number of states [hidden]."""
    text = repr({"descr": _ITEM.str, "fortran_order": False, "shape": tuple(map(int, shape))}).encode()
    unit = int(shape[-1]) * _ITEM.itemsize
    length = -(-(len(_MAGIC) + 2 + len(text) + 1) // unit) * unit
    size = length - len(_MAGIC) - 2
    return _MAGIC + size.to_bytes(2, "little") + text.ljust(size - 1) + b"\n"


class _Unusable(Exception):
    """A feature file cannot be used; the message is a sentence that says why."""


def _recorded_digest(folder: str, made_of: Mapping[str, object]) -> str | None:
    """The SHA-256 in made_of.json. Raises `_Unusable` if the features were made from something else."""
    path = files.join(folder, _MADE_OF)
    try:
        record = parse_json(files.content(path))
    except (OSError, ValueError):
        raise _Unusable(f"{path}: cannot be read.") from None
    if not isinstance(record, dict) or record.get("format") != _FORMAT or record.get("made_of") != made_of:
        raise _Unusable(f"{folder}: was made from something else.")
    return record.get("sha256")


def _is_sound(local: str, shape: Sequence[int], digest: str | None) -> bool:
    header = _header(shape)
    with open(local, "rb") as stream:
        return stream.read(len(header)) == header and files.sha256(local) == digest
