"""One file of `torch.save`, such as pytorch_model.bin: its tensors as views of the file, nothing unpickled.

PyTorch 1.6 and later write an uncompressed zip archive: `data.pkl` lists the tensors, `data/KEY` holds the bytes of a
storage. Older files are five pickles in a row (a magic number, the protocol, facts about the machine, the tensors, the
keys of the storages), followed by each storage: 8 bytes with its number of elements, and the elements.
"""

import io
import math
import zipfile
from typing import TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from keras_bert.checkpoints.state_dict import STORAGES, RefusedPickleError, StoredTensor, printable, read_state_dict
from keras_bert.core import files
from keras_bert.core.errors import UserError

_MAGIC, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
_Content: TypeAlias = npt.NDArray[np.uint8]  # Bytes of the memory-mapped file.

# Data types by the class of a storage or, for storages of bytes, by PyTorch's name: the name in safetensors, which the
# messages use, and NumPy's type.
_DATA_TYPES: dict[str, tuple[str, type[np.generic]]] = {
    "float32": ("F32", np.float32),
    "float64": ("F64", np.float64),
    "float16": ("F16", np.float16),
    "bfloat16": ("BF16", ml_dtypes.bfloat16),
    "int64": ("I64", np.int64),
    "int32": ("I32", np.int32),
    "int16": ("I16", np.int16),
    "int8": ("I8", np.int8),
    "uint8": ("U8", np.uint8),
    "uint16": ("U16", np.uint16),
    "uint32": ("U32", np.uint32),
    "uint64": ("U64", np.uint64),
    "bool": ("BOOL", np.bool_),
}
_DATA_TYPES |= {storage: _DATA_TYPES[dtype] for storage, dtype in STORAGES.items()}
_FLOATS = ("F16", "BF16", "F32", "F64")

# Keys under which a training checkpoint holds the state dict.
_WRAPPERS = ("state_dict", "model_state_dict", "model")


class TorchFile:
    """The tensors of a state dict. Values are views of the memory-mapped file."""

    def __init__(self, path: str) -> None:
        """Raises `UserError` if the file is missing, incomplete, or holds more than a state dict needs."""
        if not files.exists(path):
            raise UserError(f"{path}: is missing. Fetch it too.")
        content = files.mapped(path)
        try:
            read = _read_archive if bytes(content[:4]) == b"PK\x03\x04" else _read_pickles
            values, self._storages = read(content)
            self._tensors = _tensors(values)
            for tensor in self._tensors.values():
                self._check(tensor)
        except RefusedPickleError as error:
            raise UserError(
                f"{path}: {error}. Nothing in it was run. Fetch it again, or put model.safetensors in its place."
            ) from None
        self.names = list(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._tensors[name].shape

    def kind(self, name: str) -> str:
        """The data type of a tensor, as safetensors calls it: F32, BF16, I64, …"""
        return _data_type(self._tensors[name])[0]

    def value(self, name: str) -> np.ndarray | None:
        """A read-only view of a floating-point tensor; None for other types."""
        tensor, (kind, dtype) = self._tensors[name], _data_type(self._tensors[name])
        if kind not in _FLOATS:
            return None
        size = np.dtype(dtype).itemsize
        content = self._storages[tensor.storage.key]
        if 0 in tensor.shape:
            return np.empty(tensor.shape, dtype)
        first, last = tensor.offset, tensor.offset + _reach(tensor)
        values = content[first * size : (last + 1) * size].view(dtype)
        strides = [stride * size for stride in tensor.strides]
        return np.lib.stride_tricks.as_strided(values, tensor.shape, strides, writeable=False)

    def _check(self, tensor: StoredTensor) -> None:
        """Raises `RefusedPickleError` unless the tensor is inside its storage, and the storage inside the file."""
        storage, size = tensor.storage, np.dtype(_data_type(tensor)[1]).itemsize
        content = self._storages.get(storage.key)
        if content is None:
            raise RefusedPickleError(f"lacks the storage {printable(storage.key)}")
        held = storage.count * np.dtype(_DATA_TYPES[storage.kind][1]).itemsize
        if held > len(content):
            raise RefusedPickleError(
                f"ends early: the storage {printable(storage.key)} needs {held:,} bytes. Received: {len(content):,}"
            )
        count = math.prod(tensor.shape)
        # A tensor that repeats its elements would be larger than the file once it is copied.
        if count and max(tensor.offset + _reach(tensor) + 1, count) * size > held:
            raise RefusedPickleError(f"has a tensor of shape {list(tensor.shape)} that its storage does not hold")


def _data_type(tensor: StoredTensor) -> tuple[str, type[np.generic]]:
    return _DATA_TYPES[tensor.dtype or tensor.storage.kind]


def _reach(tensor: StoredTensor) -> int:
    """The distance from the first to the last element, in elements."""
    return sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.strides))


def _tensors(values: object) -> dict[str, StoredTensor]:
    """The tensors in the content of a pickle, by name."""
    for name in _WRAPPERS:
        if type(values) is dict and type(values.get(name)) is dict:
            values = values[name]
            break
    if type(values) is not dict:
        raise RefusedPickleError(f"needs a dictionary of tensors and holds a {type(values).__name__}")
    tensors = {name: value for name, value in values.items() if type(value) is StoredTensor}
    if not tensors:
        raise RefusedPickleError("needs a dictionary of tensors and has no tensor in it")
    return tensors


def _read_archive(content: _Content) -> tuple[object, dict[str, _Content]]:
    """`(content of data.pkl, {key: bytes of the storage})` of a zip archive; nothing is unpacked."""
    try:
        with zipfile.ZipFile(_Bytes(content)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError, OSError) as error:
        raise RefusedPickleError(f"is not a complete archive of torch.save ({error})") from None
    pickles = [entry.filename for entry in entries if entry.filename.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise RefusedPickleError("is a zip archive, but not one from torch.save")
    prefix = pickles[0].removesuffix("data.pkl")
    named, storages = {}, {}
    for entry in entries:
        name = entry.filename.removeprefix(prefix)
        if name in named:
            raise RefusedPickleError(f"holds two entries {printable(name)}")
        named[name] = entry
        key = name.removeprefix("data/")
        if name.startswith("data/") and key.isascii() and key.isdecimal():
            storages[key] = _entry_bytes(content, entry)
    order = bytes(_entry_bytes(content, named["byteorder"])[:6]) if "byteorder" in named else b"little"
    if order != b"little":
        raise RefusedPickleError("was written on a machine with another byte order, which is not supported")
    return read_state_dict(_Bytes(_entry_bytes(content, named["data.pkl"]))).value, storages


def _entry_bytes(content: _Content, entry: zipfile.ZipInfo) -> _Content:
    """The bytes of an entry of an archive."""
    if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1 or entry.compress_size != entry.file_size:
        raise RefusedPickleError(f"holds {printable(entry.filename)} compressed, which torch.save does not do")
    head = bytes(content[max(entry.header_offset, 0) :][:30])
    if head[:4] != b"PK\x03\x04" or len(head) < 30:
        raise RefusedPickleError(f"is not a complete archive: {printable(entry.filename)} is not where it should be")
    name, extra = int.from_bytes(head[26:28], "little"), int.from_bytes(head[28:30], "little")
    first = entry.header_offset + 30 + name + extra
    if first + entry.file_size > len(content):
        raise RefusedPickleError(f"ends early, inside {printable(entry.filename)}")
    return content[first : first + entry.file_size]


def _read_pickles(content: _Content) -> tuple[object, dict[str, _Content]]:
    """`(content of the fourth pickle, {key: bytes of the storage})` of a file from before PyTorch 1.6."""
    if bytes(content[:7]) == b"version":
        raise RefusedPickleError("is a Git LFS pointer, not the weights (git lfs pull fetches them)")
    stream = _Bytes(content)
    if bytes(content[:1]) != b"\x80" or read_state_dict(stream).value != _MAGIC:
        raise RefusedPickleError("is not a torch.save file")
    if read_state_dict(stream).value != _PROTOCOL:
        raise RefusedPickleError("has an unknown protocol of torch.save")
    machine = read_state_dict(stream).value
    if type(machine) is not dict or machine.get("little_endian") is not True:
        raise RefusedPickleError("was written on a machine with another byte order, which is not supported")
    pickled = read_state_dict(stream)
    keys = read_state_dict(stream).value
    kinds = {storage.key: storage.kind for storage in pickled.storages}
    if type(keys) is not list:
        raise RefusedPickleError("lacks the list of its storages")
    storages: dict[str, _Content] = {}
    first = stream.tell()
    for key in keys:
        if type(key) is not str or key not in kinds or key in storages:
            raise RefusedPickleError("lists a storage twice, or one without tensors")
        count = int.from_bytes(bytes(content[first : first + 8]), "little", signed=True)
        end = first + 8 + count * np.dtype(_DATA_TYPES[kinds[key]][1]).itemsize
        if count < 0 or end > len(content):
            raise RefusedPickleError(f"ends early, inside the storage {printable(key)}")
        storages[key] = content[first + 8 : end]
        first = end
    return pickled.value, storages


class _Bytes(io.RawIOBase):
    """A stream over mapped bytes. It refuses reads larger than a pickle's strings or an archive's directory."""

    # The directory of an archive has about 120 bytes for each tensor.
    _MOST = 4 << 20

    def __init__(self, content: _Content) -> None:
        self._content = content.data
        self._position = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: len(self._content)}[whence]
        if start + offset < 0:
            raise ValueError("an offset before the beginning")
        self._position = start + offset
        return self._position

    def read(self, count: int | None = -1) -> bytes:
        left = max(len(self._content) - self._position, 0)
        count = left if count is None or count < 0 else min(count, left)
        if count > self._MOST:
            raise ValueError(f"{count:,} bytes in one read")
        found = bytes(self._content[self._position : self._position + count])
        self._position += count
        return found

    def readline(self, limit: int | None = -1) -> bytes:
        line = bytes(self._content[self._position : self._position + 1024])
        end = line.find(b"\n") + 1
        if not end:
            raise ValueError("an unterminated line")
        self._position += end
        return line[:end]
