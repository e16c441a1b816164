"""The pickle of a PyTorch state dict, read by an interpreter that can build tensors' descriptions and nothing else.

Nothing is unpickled: no name in the file is imported and nothing in it is called. `pickletools` splits the stream into
opcodes; the few that `torch.save` writes for a state dict are acted on here, and the few globals that it names stand
for functions below. Every other opcode or global is refused by name. A stream of n bytes takes a time and memory in
proportion to n, and at most `MOST_OPCODES`.
"""

import dataclasses
import pickletools

# A tensor takes some 30. This many take 30 MB at the most, whatever they are.
MOST_OPCODES = 300_000
# A name of a tensor, of a global or of a storage's place.
_LONGEST_STRING = 1 << 16


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
class StateDictPickle:
    """What a pickle says.

    Attributes:
        value: of `dict` (with strings as keys), `list`, `tuple`, `str`, `int`, `float`, `bool`, `None`, `StoredTensor`
            and `Storage`, or a private class for a global that is named and not called.
        storages: every `Storage` that it names.
    """

    value: object
    storages: list


@dataclasses.dataclass(frozen=True)
class _Global:
    """A name that the file gives, never looked up."""

    name: str


class _Mark:
    pass


_MARK = _Mark()


def printable(name):
    """A name from the file for a message of one line."""
    return name[:100] if name.isprintable() else ascii(name)[1:-1][:100]


def read_state_dict(stream):
    """The `StateDictPickle` of the pickle at the stream's position; the stream stands behind it then.

    Args:
        stream: with `read(count)` and `readline()`, as a binary file.

    Raises:
        RefusedPickleError: anything else is in it, or it is not whole.
    """
    machine = _Machine()
    operations = pickletools.genops(stream)
    for _ in range(MOST_OPCODES):
        try:
            opcode, argument, _ = next(operations)
        except (ValueError, OverflowError, MemoryError, StopIteration) as error:
            raise RefusedPickleError(f"is not a whole pickle ({str(error) or 'it ends early'})") from None
        if opcode.name == "STOP":
            return StateDictPickle(machine.result(), machine.storages)
        act = _ACTIONS.get(opcode.name)
        if act is None:
            raise RefusedPickleError(f"holds the opcode {opcode.name}, which no state dict needs")
        if isinstance(argument, str) and len(argument) > _LONGEST_STRING:
            raise RefusedPickleError(f"holds a string of {len(argument):,} characters, which no state dict needs")
        act(machine, argument)
    raise RefusedPickleError(f"holds more than {MOST_OPCODES:,} opcodes, which no state dict needs")


class _Machine:
    """The stack and memo of a pickle."""

    def __init__(self):
        self.stack = []
        self.memo = {}
        self.storages = []

    def result(self):
        value = self.pop()
        if self.stack:
            raise RefusedPickleError("leaves something on the stack")
        return value

    def pop(self):
        if not self.stack or self.stack[-1] is _MARK:
            raise RefusedPickleError("takes what is not on the stack")
        return self.stack.pop()

    def top(self, cls):
        if not self.stack or type(self.stack[-1]) is not cls:
            raise RefusedPickleError(f"needs a {cls.__name__} on the stack and has none")
        return self.stack[-1]

    def pop_to_mark(self):
        for index in range(len(self.stack) - 1, -1, -1):
            if self.stack[index] is _MARK:
                values = self.stack[index + 1 :]
                del self.stack[index:]
                return values
        raise RefusedPickleError("needs a mark on the stack and has none")

    def push(self, value):
        self.stack.append(value)

    def pop_tuple(self, length):
        self.push(tuple(reversed([self.pop() for _ in range(length)])))

    def put(self, index):
        value = self.pop()
        self.memo[index] = value
        self.push(value)

    def get(self, index):
        if index not in self.memo:
            raise RefusedPickleError("recalls what it never noted")
        self.push(self.memo[index])

    def append(self, values):
        self.top(list).extend(values)

    def set_items(self, pairs):
        if len(pairs) % 2:
            raise RefusedPickleError("has a key without a value")
        target = self.top(dict)
        for key, value in zip(pairs[::2], pairs[1::2]):
            # Other keys need not be: a tuple of tuples of … would take an exponential time to hash.
            if type(key) is not str:
                raise RefusedPickleError(f"has a {type(key).__name__} as a key; a state dict's are strings")
            target[key] = value

    def set_item(self):
        value, key = self.pop(), self.pop()
        self.set_items([key, value])

    def name_global(self, name):
        if name not in _FUNCTIONS and name not in _NAMED:
            raise RefusedPickleError(f"names {printable(name)}, which no state dict needs")
        self.push(_Global(name))

    def name_global_of_stack(self):
        name, module = self.pop(), self.pop()
        if type(name) is not str or type(module) is not str:
            raise RefusedPickleError("needs a global's name on the stack and has none")
        self.name_global(f"{module}.{name}")

    def reduce(self):
        arguments, function = self.pop(), self.pop()
        if type(function) is not _Global or function.name not in _FUNCTIONS or type(arguments) is not tuple:
            called = function.name if type(function) is _Global else f"a {type(function).__name__}"
            raise RefusedPickleError(f"calls {called}, which no state dict does")
        self.push(_FUNCTIONS[function.name](*_of_length(arguments, *_LENGTHS[function.name], function.name)))

    def persistent(self):
        self.storages.append(_storage(self.pop()))
        self.push(self.storages[-1])

    def build(self):
        """The attributes of a state dict: `_metadata`, the versions of its modules, which say nothing of tensors."""
        state = self.pop()
        if type(state) is not dict:
            raise RefusedPickleError("gives something attributes that are no dictionary")
        self.top(dict)


_ACTIONS = {
    "PROTO": lambda machine, argument: None,
    "FRAME": lambda machine, argument: None,
    "MARK": lambda machine, argument: machine.push(_MARK),
    "NONE": lambda machine, argument: machine.push(None),
    "NEWTRUE": lambda machine, argument: machine.push(True),
    "NEWFALSE": lambda machine, argument: machine.push(False),
    **dict.fromkeys(
        ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINSTRING",
         "SHORT_BINSTRING"),
        lambda machine, argument: machine.push(argument),
    ),
    "EMPTY_DICT": lambda machine, argument: machine.push({}),
    "EMPTY_LIST": lambda machine, argument: machine.push([]),
    "EMPTY_TUPLE": lambda machine, argument: machine.push(()),
    "TUPLE": lambda machine, argument: machine.push(tuple(machine.pop_to_mark())),
    "TUPLE1": lambda machine, argument: machine.pop_tuple(1),
    "TUPLE2": lambda machine, argument: machine.pop_tuple(2),
    "TUPLE3": lambda machine, argument: machine.pop_tuple(3),
    "BINPUT": lambda machine, argument: machine.put(argument),
    "LONG_BINPUT": lambda machine, argument: machine.put(argument),
    "MEMOIZE": lambda machine, argument: machine.put(len(machine.memo)),
    "BINGET": lambda machine, argument: machine.get(argument),
    "LONG_BINGET": lambda machine, argument: machine.get(argument),
    "APPEND": lambda machine, argument: machine.append([machine.pop()]),
    "APPENDS": lambda machine, argument: machine.append(machine.pop_to_mark()),
    "SETITEM": lambda machine, argument: machine.set_item(),
    "SETITEMS": lambda machine, argument: machine.set_items(machine.pop_to_mark()),
    # `pickletools` gives both words with a blank between.
    "GLOBAL": lambda machine, argument: machine.name_global(argument.replace(" ", ".", 1)),
    "STACK_GLOBAL": lambda machine, argument: machine.name_global_of_stack(),
    "REDUCE": lambda machine, argument: machine.reduce(),
    "BINPERSID": lambda machine, argument: machine.persistent(),
    "BUILD": lambda machine, argument: machine.build(),
}  # fmt: skip


def _storage(identity):
    """A `Storage` by what `torch.save` calls it: ("storage", class, key, device, count), in old files with a view."""
    fits = type(identity) is tuple and len(identity) in (5, 6) and identity[0] == "storage"
    if not fits or identity[5:] not in ((), (None,)):
        raise RefusedPickleError("names something outside of the pickle that is no whole storage")
    _, kind, key, _, count = identity[:5]
    if type(kind) is not _Global or not kind.name.endswith("Storage") or type(key) is not str:
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
    if type(dtype) is not _Global or dtype.name not in _DTYPES:
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
_FUNCTIONS = {
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
# How many arguments they take.
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
_NAMED = {
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


def _of_length(values, fewest, most, what):
    if not fewest <= len(values) <= most:
        raise RefusedPickleError(f"gives {what} {len(values)} arguments")
    return values
