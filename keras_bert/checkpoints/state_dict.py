"""Reads the pickle of a PyTorch state dict with an interpreter that can only build descriptions of tensors.

Nothing is unpickled: no name in the file is imported and nothing in it is called. `pickletools` splits the stream into
opcodes. The few that `torch.save` writes for a state dict are interpreted here, and the few functions that it names
have stand-ins, which make a description of a tensor where PyTorch makes the tensor. Every other opcode or global is
refused by name. Time and memory are linear in the length of the stream, and at most `_MOST_OPCODES` opcodes are read.
"""

import dataclasses
import pickletools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar


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
    """The storage of a persistent id: ("storage", class, key, device, count), in old files also a view, None."""
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


# The functions that a pickle may call: `{name: (stand-in, fewest arguments, most)}`.
_FUNCTIONS: dict[str, tuple[Callable[..., object], int, int]] = {
    "collections.OrderedDict": (dict, 0, 0),
    "torch._utils._rebuild_tensor": (_tensor, 4, 4),
    "torch._utils._rebuild_tensor_v2": (lambda *arguments: _tensor(*arguments[:4]), 6, 7),
    "torch._utils._rebuild_tensor_v3": (_tensor_of_bytes, 7, 8),
    "torch._utils._rebuild_parameter": (_parameter, 3, 3),
    "torch._utils._rebuild_parameter_with_state": (_parameter, 4, 4),
    "torch.Size": (_size, 1, 1),
}
# PyTorch's classes of storages, and the names of their data types.
# fmt: off
STORAGES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "UntypedStorage": "uint8",
}
# fmt: on
_FLOATS, _INTEGERS = ("float32", "float64", "float16", "bfloat16"), ("int64", "int32", "int16", "int8")
_DTYPES = {f"torch.{name}" for name in (*_FLOATS, *_INTEGERS, *(f"u{name}" for name in _INTEGERS), "bool")}
# Names that a pickle may hold but not call.
_NAMED = {*(f"torch.{name}" for name in STORAGES), "torch.storage.UntypedStorage", *_DTYPES}


def _count(value: object) -> int:
    """`value`, if it is a valid size or offset."""
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise RefusedPickleError("needs a number of 0 or more as a size or offset, and has something else")
    return value


# A tensor takes about 30 opcodes. This many take at most 30 MB of memory, whatever they are.
_MOST_OPCODES = 300_000
# Strings are names of tensors, globals and devices.
_LONGEST_STRING = 1 << 16

_T = TypeVar("_T")


class PickleStream(Protocol):
    """The part of a binary file that `pickletools` reads."""

    def read(self, count: int, /) -> bytes: ...

    def readline(self) -> bytes: ...


@dataclasses.dataclass(frozen=True)
class StateDictPickle:
    """The content of a pickle.

    Attributes:
        value: made of `dict` (with `str` keys), `list`, `tuple`, `str`, `int`, `float`, `bool`, `None`, `StoredTensor`,
            `Storage`, and `NamedGlobal` for names that are not called.
        storages: every storage that it names.
    """

    value: object
    storages: list[Storage]


_MARK = object()


def read_state_dict(stream: PickleStream) -> StateDictPickle:
    """Reads the pickle at the stream's position, and leaves the stream at its end.

    Raises:
        RefusedPickleError: the pickle is incomplete, or has something that a state dict does not need.
    """
    machine = _Machine()
    operations = pickletools.genops(stream)  # type: ignore[arg-type]  # It calls nothing else of a file.
    for _ in range(_MOST_OPCODES):
        try:
            opcode, argument, _ = next(operations)
        except (ValueError, OverflowError, MemoryError, StopIteration) as error:
            raise RefusedPickleError(f"is not a complete pickle ({str(error) or 'it ends early'})") from None
        if opcode.name == "STOP":
            return StateDictPickle(machine.result(), machine.storages)
        act = _ACTIONS.get(opcode.name)
        if act is None:
            raise RefusedPickleError(f"holds the opcode {opcode.name}, which no state dict needs")
        if isinstance(argument, str) and len(argument) > _LONGEST_STRING:
            raise RefusedPickleError(f"holds a string of {len(argument):,} characters, which no state dict needs")
        act(machine, argument)
    raise RefusedPickleError(f"holds more than {_MOST_OPCODES:,} opcodes, which no state dict needs")


class _Machine:
    """The stack and memo of a pickle."""

    def __init__(self) -> None:
        self.stack: list[object] = []
        self.memo: dict[int, object] = {}
        self.storages: list[Storage] = []

    def result(self) -> object:
        value = self.pop()
        if self.stack:
            raise RefusedPickleError("leaves values on the stack")
        return value

    def pop(self) -> object:
        if not self.stack or self.stack[-1] is _MARK:
            raise RefusedPickleError("pops more than is on the stack")
        return self.stack.pop()

    def top(self, cls: type[_T]) -> _T:
        if not self.stack or type(self.stack[-1]) is not cls:
            raise RefusedPickleError(f"needs a {cls.__name__} on the stack and has none")
        return self.stack[-1]

    def pop_to_mark(self) -> list[object]:
        for index in range(len(self.stack) - 1, -1, -1):
            if self.stack[index] is _MARK:
                values = self.stack[index + 1 :]
                del self.stack[index:]
                return values
        raise RefusedPickleError("needs a mark on the stack and has none")

    def pop_tuple(self, length: int) -> None:
        self.stack.append(tuple(reversed([self.pop() for _ in range(length)])))

    def put(self, index: int) -> None:
        value = self.pop()
        self.memo[index] = value
        self.stack.append(value)

    def get(self, index: int) -> None:
        if index not in self.memo:
            raise RefusedPickleError("reads a memo entry that was never written")
        self.stack.append(self.memo[index])

    def append(self, values: Sequence[object]) -> None:
        self.top(list).extend(values)

    def set_items(self, pairs: Sequence[object]) -> None:
        if len(pairs) % 2:
            raise RefusedPickleError("has a key without a value")
        target = self.top(dict)
        for key, value in zip(pairs[::2], pairs[1::2]):
            # A state dict has no other keys, and hashing a tuple of tuples of … could take exponential time.
            if type(key) is not str:
                raise RefusedPickleError(f"has a {type(key).__name__} as a key; a state dict's are strings")
            target[key] = value

    def set_item(self) -> None:
        value, key = self.pop(), self.pop()
        self.set_items([key, value])

    def name_global(self, name: str) -> None:
        if name not in _FUNCTIONS and name not in _NAMED:
            raise RefusedPickleError(f"names {printable(name)}, which no state dict needs")
        self.stack.append(NamedGlobal(name))

    def name_global_from_stack(self) -> None:
        name, module = self.pop(), self.pop()
        if type(name) is not str or type(module) is not str:
            raise RefusedPickleError("needs a global's name on the stack and has none")
        self.name_global(f"{module}.{name}")

    def reduce(self) -> None:
        arguments, function = self.pop(), self.pop()
        if type(function) is not NamedGlobal or function.name not in _FUNCTIONS or type(arguments) is not tuple:
            called = function.name if type(function) is NamedGlobal else f"a {type(function).__name__}"
            raise RefusedPickleError(f"calls {called}, which no state dict does")
        stand_in, fewest, most = _FUNCTIONS[function.name]
        if not fewest <= len(arguments) <= most:
            raise RefusedPickleError(f"calls {function.name} with {len(arguments)} arguments")
        self.stack.append(stand_in(*arguments))

    def persistent(self) -> None:
        self.storages.append(storage_of(self.pop()))
        self.stack.append(self.storages[-1])

    def build(self) -> None:
        """Skips the attributes of a state dict: `_metadata` holds versions of modules, nothing about tensors."""
        state = self.pop()
        if type(state) is not dict:
            raise RefusedPickleError("sets attributes from something other than a dictionary")
        self.top(dict)


_NUMBERS = ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT")
_STRINGS = ("BINUNICODE", "SHORT_BINUNICODE", "BINSTRING", "SHORT_BINSTRING")
_ACTIONS: dict[str, Callable[[_Machine, Any], None]] = {
    **dict.fromkeys(("PROTO", "FRAME"), lambda machine, argument: None),
    "MARK": lambda machine, argument: machine.stack.append(_MARK),
    "NONE": lambda machine, argument: machine.stack.append(None),
    "NEWTRUE": lambda machine, argument: machine.stack.append(True),
    "NEWFALSE": lambda machine, argument: machine.stack.append(False),
    **dict.fromkeys((*_NUMBERS, *_STRINGS), lambda machine, argument: machine.stack.append(argument)),
    "EMPTY_DICT": lambda machine, argument: machine.stack.append({}),
    "EMPTY_LIST": lambda machine, argument: machine.stack.append([]),
    "EMPTY_TUPLE": lambda machine, argument: machine.stack.append(()),
    "TUPLE": lambda machine, argument: machine.stack.append(tuple(machine.pop_to_mark())),
    "TUPLE1": lambda machine, argument: machine.pop_tuple(1),
    "TUPLE2": lambda machine, argument: machine.pop_tuple(2),
    "TUPLE3": lambda machine, argument: machine.pop_tuple(3),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), lambda machine, argument: machine.put(argument)),
    "MEMOIZE": lambda machine, argument: machine.put(len(machine.memo)),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), lambda machine, argument: machine.get(argument)),
    "APPEND": lambda machine, argument: machine.append([machine.pop()]),
    "APPENDS": lambda machine, argument: machine.append(machine.pop_to_mark()),
    "SETITEM": lambda machine, argument: machine.set_item(),
    "SETITEMS": lambda machine, argument: machine.set_items(machine.pop_to_mark()),
    # `pickletools` gives module and name, separated by a space.
    "GLOBAL": lambda machine, argument: machine.name_global(argument.replace(" ", ".", 1)),
    "STACK_GLOBAL": lambda machine, argument: machine.name_global_from_stack(),
    "REDUCE": lambda machine, argument: machine.reduce(),
    "BINPERSID": lambda machine, argument: machine.persistent(),
    "BUILD": lambda machine, argument: machine.build(),
}
