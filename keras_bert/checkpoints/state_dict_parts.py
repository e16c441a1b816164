"""What a PyTorch state dict is made of, and the stand-ins for the functions that its pickle names.

None of PyTorch's own is called, or even imported: a tensor becomes the description of one.
"""

import dataclasses


class RefusedPickleError(Exception):
    """What in the stream is not of a state dict, in words that go on from `path: `."""


@dataclasses.dataclass(frozen=True)
class Storage:
    """A run of numbers in the file.

    Attributes:
        kind: of its numbers, as PyTorch calls the storage's class: `FloatStorage`, `UntypedStorage` (bytes), …
        key: its name among the file's storages.
        count: how many numbers it holds.
    """

    kind: str
    key: str
    count: int


@dataclasses.dataclass(frozen=True)
class StoredTensor:
    """A tensor as a view of a storage, all in numbers of elements.

    Attributes:
        storage: the `Storage`.
        offset: its first element there.
        shape, strides: one number for each dimension.
        dtype: PyTorch's name for its numbers where the storage is one of bytes, else None.
    """

    storage: Storage
    offset: int
    shape: tuple
    strides: tuple
    dtype: str | None = None


@dataclasses.dataclass(frozen=True)
class NamedGlobal:
    """A name that the file gives, never looked up."""

    name: str


def printable(name):
    """A name from the file for a message of one line."""
    return name[:100] if name.isprintable() else ascii(name)[1:-1][:100]


def storage_of(identity):
    """A `Storage` by what `torch.save` calls it: ("storage", class, key, device, count), in old files with a view."""
    fits = type(identity) is tuple and len(identity) in (5, 6) and identity[0] == "storage"
    if not fits or identity[5:] not in ((), (None,)):
        raise RefusedPickleError("names something outside of the pickle that is no whole storage")
    _, kind, key, _, count = identity[:5]
    if type(kind) is not NamedGlobal or not kind.name.endswith("Storage") or type(key) is not str:
        raise RefusedPickleError("names a storage by something else than its class and its key")
    return Storage(kind.name.rpartition(".")[2], key, _count(count))


def _tensor(storage, offset, shape, strides, dtype=None):
    if type(storage) is not Storage:
        raise RefusedPickleError("makes a tensor of something else than a storage")
    for sizes in (shape, strides):
        if type(sizes) is not tuple or len(sizes) > 8:
            raise RefusedPickleError("makes a tensor whose shape is no tuple of at most 8 numbers")
    if len(shape) != len(strides):
        raise RefusedPickleError("makes a tensor with other strides than dimensions")
    return StoredTensor(storage, _count(offset), tuple(map(_count, shape)), tuple(map(_count, strides)), dtype)


def _tensor_of_bytes(storage, offset, shape, strides, _requires_grad, _hooks, dtype, *_metadata):
    if type(dtype) is not NamedGlobal or dtype.name not in _DTYPES:
        raise RefusedPickleError("makes a tensor of numbers that have no name")
    return _tensor(storage, offset, shape, strides, dtype.name.removeprefix("torch."))


def _parameter(tensor, *_):
    if type(tensor) is not StoredTensor:
        raise RefusedPickleError("makes a parameter of something else than a tensor")
    return tensor


def _size(sizes):
    if type(sizes) is not tuple:
        raise RefusedPickleError("makes a torch.Size of something else than a tuple")
    return sizes


# What may be called, by its name; these are their stand-ins.
FUNCTIONS = {
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
# The fewest and the most arguments that they take.
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
_DTYPES = {
    f"torch.{name}"
    for name in (
        "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32",
        "uint64", "bool",
    )
}  # fmt: skip
# What may be named and is not called.
NAMED = {
    *(f"torch.{name}Storage" for name in _STORAGES),
    "torch.UntypedStorage",
    "torch.storage.UntypedStorage",
    *_DTYPES,
}


def _count(value):
    """A number of elements, or of a first one."""
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise RefusedPickleError("needs a number of 0 or more for a place or a size, and has something else")
    return value


def call(name, arguments):
    """What a function of the table gives. Raises `RefusedPickleError` for arguments that it does not take."""
    fewest, most = _LENGTHS[name]
    if not fewest <= len(arguments) <= most:
        raise RefusedPickleError(f"gives {name} {len(arguments)} arguments")
    return FUNCTIONS[name](*arguments)
