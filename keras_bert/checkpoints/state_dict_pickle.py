"""The pickle of a PyTorch state dict, read by an interpreter that can build tensors' descriptions and nothing else.

Nothing is unpickled: no name in the file is imported and nothing in it is called. `pickletools` splits the stream into
opcodes; the few that `torch.save` writes for a state dict are acted on here, and the few globals that it names stand
for the functions of `state_dict_parts`. Every other opcode or global is refused by name. Time and memory are in
proportion to the stream's length, of which no more than `MOST_OPCODES` are read.
"""

import dataclasses
import pickletools

from keras_bert.checkpoints.state_dict_parts import (
    FUNCTIONS,
    NAMED,
    NamedGlobal,
    RefusedPickleError,
    call,
    printable,
    storage_of,
)

# A tensor takes some 30. This many take 30 MB at the most, whatever they are.
MOST_OPCODES = 300_000
# A name of a tensor, of a global or of a storage's place.
_LONGEST_STRING = 1 << 16


@dataclasses.dataclass(frozen=True)
class StateDictPickle:
    """What a pickle says.

    Attributes:
        value: of `dict` (with strings as keys), `list`, `tuple`, `str`, `int`, `float`, `bool`, `None`, `StoredTensor`
            and `Storage`, or a `NamedGlobal` that is not called.
        storages: every `Storage` that it names.
    """

    value: object
    storages: list


class _Mark:
    pass


_MARK = _Mark()


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
        if name not in FUNCTIONS and name not in NAMED:
            raise RefusedPickleError(f"names {printable(name)}, which no state dict needs")
        self.push(NamedGlobal(name))

    def name_global_of_stack(self):
        name, module = self.pop(), self.pop()
        if type(name) is not str or type(module) is not str:
            raise RefusedPickleError("needs a global's name on the stack and has none")
        self.name_global(f"{module}.{name}")

    def reduce(self):
        arguments, function = self.pop(), self.pop()
        if type(function) is not NamedGlobal or function.name not in FUNCTIONS or type(arguments) is not tuple:
            called = function.name if type(function) is NamedGlobal else f"a {type(function).__name__}"
            raise RefusedPickleError(f"calls {called}, which no state dict does")
        self.push(call(function.name, arguments))

    def persistent(self):
        self.storages.append(storage_of(self.pop()))
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
