"""The parts of a PyTorch state dict, and stand-ins for the functions that its pickle names.

No PyTorch code is called or imported: a tensor becomes a description of one.
"""

import dataclasses
from collections.abc import Callable
from typing import Any


class RefusedPickleError(Exception):
    """The stream has something that does not belong in a state dict. The message continues `path: `."""


@dataclasses.dataclass(frozen=True)
class Storage:
    """A flat array of numbers in the file.

    Attributes:
        kind: its class in PyTorch, which gives the data type: `FloatStorage`, `UntypedStorage` (bytes), …
        key: its name among the storages of the file.
        count: how many numbers it holds.
    """

    kind: str
    key: str
    count: int


@dataclasses.dataclass(frozen=True)
class StoredTensor:
    """A tensor as a view of a storage, in elements, not bytes.

    Attributes:
        storage: the storage it views.
        offset: its first element in the storage.
        shape, strides: one number for each dimension.
        dtype: PyTorch's name of its data type if the storage holds bytes, else None.
    """

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str | None = None


@dataclasses.dataclass(frozen=True)
class NamedGlobal:
    """The name of a global in the file. It is never looked up."""

    name: str


def printable(name: str) -> str:
    """A name from the file, made safe for a one-line message."""
    return name[:100] if name.isprintable() else ascii(name)[1:-1][:100]


def storage_of(identity: object) -> Storage:
    """The storage with a persistent id of `torch.save`: ("storage", class, key, device, count), in old files + view."""
    refused = RefusedPickleError("refers to something outside the pickle that is not a storage")
    if type(identity) is not tuple or len(identity) not in (5, 6):
        raise refused
    if identity[0] != "storage" or identity[5:] not in ((), (None,)):
        raise refused
    _, kind, key, _, count = identity[:5]
    if type(kind) is not NamedGlobal or not kind.name.endswith("Storage") or type(key) is not str:
        raise RefusedPickleError("identifies a storage by something other than its class and key")
    return Storage(kind.name.rpartition(".")[2], key, _count(count))


# The arguments below come from the file: they may be anything until they are checked.
def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, dtype: str | None = None) -> StoredTensor:
    if type(storage) is not Storage:
        raise RefusedPickleError("builds a tensor from something other than a storage")
    for sizes in (shape, strides):
        if type(sizes) is not tuple or len(sizes) > 8:
            raise RefusedPickleError("builds a tensor whose shape or strides are not a tuple of at most 8 numbers")
    if len(shape) != len(strides):
        raise RefusedPickleError("builds a tensor with more or fewer strides than dimensions")
    return StoredTensor(storage, _count(offset), tuple(map(_count, shape)), tuple(map(_count, strides)), dtype)


def _tensor_of_bytes(
    storage: Any, offset: Any, shape: Any, strides: Any, _requires_grad: Any, _hooks: Any, dtype: Any, *_metadata: Any
) -> StoredTensor:
    if type(dtype) is not NamedGlobal or dtype.name not in _DTYPES:
        raise RefusedPickleError("builds a tensor of an unknown data type")
    return _tensor(storage, offset, shape, strides, dtype.name.removeprefix("torch."))


def _parameter(tensor: Any, *_: Any) -> StoredTensor:
    if type(tensor) is not StoredTensor:
        raise RefusedPickleError("builds a parameter from something other than a tensor")
    return tensor


def _size(sizes: Any) -> tuple[Any, ...]:
    if type(sizes) is not tuple:
        raise RefusedPickleError("builds a torch.Size from something other than a tuple")
    return sizes


# The stand-ins for the functions that a pickle may call, by name.
FUNCTIONS: dict[str, Callable[..., object]] = {
    "collections.OrderedDict": dict,
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": lambda storage, offset, shape, strides, *_: _tensor(
        storage, offset, shape, strides
    ),
    "torch._utils._rebuild_tensor_v3": _tensor_of_bytes,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch.Size": _size,
}
# The fewest and most arguments they take.
_LENGTHS = {
    "collections.OrderedDict": (0, 0),
    "torch._utils._rebuild_tensor": (4, 4),
    "torch._utils._rebuild_tensor_v2": (6, 7),
    "torch._utils._rebuild_tensor_v3": (7, 8),
    "torch._utils._rebuild_parameter": (3, 3),
    "torch._utils._rebuild_parameter_with_state": (4, 4),
    "torch.Size": (1, 1),
}
_STORAGES = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
_FLOATS, _INTEGERS = ("float32", "float64", "float16", "bfloat16"), ("int64", "int32", "int16", "int8")
_DTYPES = {f"torch.{name}" for name in (*_FLOATS, *_INTEGERS, *(f"u{name}" for name in _INTEGERS), "bool")}
# Names that a pickle may hold but not call.
NAMED = {
    *(f"torch.{name}Storage" for name in _STORAGES),
    "torch.UntypedStorage",
    "torch.storage.UntypedStorage",
    *_DTYPES,
}


def _count(value: object) -> int:
    """`value`, if it is a valid size or offset."""
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise RefusedPickleError("needs a number of 0 or more as a size or offset, and has something else")
    return value


def call(name: str, arguments: tuple[object, ...]) -> object:
    """The result of a function in `FUNCTIONS`. Raises `RefusedPickleError` for arguments it does not take."""
    fewest, most = _LENGTHS[name]
    if not fewest <= len(arguments) <= most:
        raise RefusedPickleError(f"calls {name} with {len(arguments)} arguments")
    return FUNCTIONS[name](*arguments)
