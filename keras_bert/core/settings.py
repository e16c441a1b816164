"""Converts mappings to dataclasses and back, and names every unknown key, wrong type and invalid value.

The mechanics only; the settings themselves are in `config/`.
"""

import contextlib
import copy
import dataclasses
import difflib
import functools
import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from keras_bert.core.errors import UserError, nearest_name
from keras_bert.core.yaml_and_json import dump_yaml, parse_yaml, unique_keys

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Dataclass = typing.TypeVar("_Dataclass", bound="DataclassInstance")
_Function = typing.TypeVar("_Function", bound=Callable[..., Any])
_Number = typing.TypeVar("_Number", int, float)
_TYPES = {int: "a whole number", float: "a finite number", bool: "true or false", str: "text", dict: "a mapping"}
MAX_SEED = 2**32 - 1


class Bounds(typing.NamedTuple):
    """The numbers that a setting takes, for its annotation; an open bound is excluded.

    `words` describe them in messages.
    """

    words: str
    min: float = 0
    max: float = math.inf
    min_open: bool = False
    max_open: bool = False

    def hold(self, value: float) -> bool:
        above = value > self.min if self.min_open else value >= self.min
        return above and (value < self.max if self.max_open else value <= self.max)


class OneOf(typing.NamedTuple):
    """The names that a setting takes, for its annotation, if code elsewhere defines them; otherwise use a `Literal`.

    `own_words` describe them in messages; by default, messages list them.
    """

    names: Callable[[], Sequence[str]]
    own_words: str = ""

    @property
    def words(self) -> str:
        return self.own_words or f"one of {', '.join(self.names())}"

    def hold(self, value: str) -> bool:
        return value in self.names()


Positive = Annotated[_Number, Bounds("a value above 0", min_open=True)]
NotNegative = Annotated[_Number, Bounds("0 or more")]
Share = Annotated[float, Bounds("a share from 0 to 1", max=1)]
PositiveShare = Annotated[float, Bounds("a share above 0 and at most 1", max=1, min_open=True)]
OpenShare = Annotated[float, Bounds("a share between 0 and 1", max=1, min_open=True, max_open=True)]
BelowOne = Annotated[float, Bounds("a value of at least 0 and less than 1", max=1, max_open=True)]
Dropout = Annotated[float, Bounds("a rate of at least 0 and less than 1", max=1, max_open=True)]
Seed = Annotated[int, Bounds(f"a whole number from 0 to {MAX_SEED}", max=MAX_SEED)]  # NumPy's seeds have 32 bits.


def are_seeds(numbers: Collection[int]) -> bool:
    """Whether whole numbers are distinct seeds, each for a run."""
    return all(0 <= number <= MAX_SEED for number in numbers) and len(set(numbers)) == len(numbers)


class Checked:
    """Base of a dataclass that checks its values against its annotations; `ValueError` names the first invalid one.

    An equivalent value of another type is converted: a whole number for a float, a tuple for a list.
    """

    def __post_init__(self) -> None:
        cls: Any = type(self)
        for name, kind in types_of(cls).items():
            try:
                object.__setattr__(self, name, _convert(kind, getattr(self, name), name))
            except UserError as error:
                raise ValueError(str(error)) from None


def checked(function: _Function) -> _Function:
    """Decorates a function to check its arguments as `Checked` does fields; `ValueError` names the first invalid one.

    A class takes its instances. Annotations of other kinds, such as `Sequence[str]`, are left to the function.
    """
    signature = inspect.signature(function)

    @functools.cache
    def kinds() -> dict[str, Any]:  # On the first call, because a method's own class may be among them.
        return typing.get_type_hints(function, include_extras=True)

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        bound = signature.bind(*arguments, **keywords)
        for name, value in bound.arguments.items():
            parts = parts_of(kinds().get(name, Any))
            if all(part in _TYPES or typing.get_origin(part) in (Annotated, Literal) for part in parts):
                try:
                    bound.arguments[name] = _convert(kinds()[name], value, name)
                except UserError as error:
                    raise ValueError(str(error)) from None
            elif all(inspect.isclass(part) and part is not Any for part in parts):
                names = " or ".join(part.__name__.removesuffix("V2") for part in parts)  # As of tf.data.Dataset.
                require(isinstance(value, kinds()[name]), name, f"a {names}", type(value).__name__)
        return function(*bound.args, **bound.kwargs)

    call.__signature__ = signature  # type: ignore[attr-defined]  # Keras does not look for it in what is wrapped.
    return typing.cast(_Function, call)


@functools.cache
def types_of(cls: type) -> dict[str, Any]:
    """`{field: its annotation}` of a dataclass, for the fields that its constructor takes."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}


def to_mapping(settings: "DataclassInstance") -> dict[str, Any]:
    """A dataclass as a plain mapping; `from_mapping` turns it back into an equal object."""
    return dataclasses.asdict(settings)


def to_yaml(settings: "DataclassInstance") -> str:
    """A dataclass as YAML."""
    return dump_yaml(to_mapping(settings))


def from_mapping(cls: type[_Dataclass], values: Any, where: str = "") -> _Dataclass:
    """Builds the dataclass `cls`, nested ones included, from a mapping.

    Args:
        cls: a dataclass.
        values: a mapping of field names to plain YAML values; anything else is refused.
        where: the key of this section (`"training"`), for the messages.

    Raises:
        UserError: an unknown key (the nearest known one is named), a wrong type or an invalid value.
    """
    if not isinstance(values, dict):
        raise UserError(f"{where or 'The recipe'}: needs a section of settings. Received: {values!r}.")
    cls, values = chosen(cls, values, where)
    fields = types_of(cls)
    for key in values:
        if key not in fields:
            raise UserError(unknown_key(cls, _dotted(where, str(key)), str(key)))
    arguments = {key: _convert(fields[key], value, _dotted(where, key)) for key, value in values.items()}
    if missing := [name for name in required(cls) if name not in values]:
        raise UserError(f"{_dotted(where, missing[0])}: must be given and was not.")
    try:
        return cls(**arguments)
    except ValueError as error:
        raise UserError(_dotted(where, str(error))) from None


def section_of(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A section of a recipe that is not checked yet; {} without one. Raises `UserError` for anything else."""
    return {} if values.get(key) is None else _convert(dict, values[key], key)


def text_of(values: Mapping[str, Any], key: str) -> str | None:
    """A text of a recipe that is not checked yet, or None. Raises `UserError` for anything else."""
    return _convert(str | None, values.get(key), key)


def chosen(cls: type[_Dataclass], values: dict[str, Any], where: str) -> tuple[type[_Dataclass], dict[str, Any]]:
    """`(class, values of its fields)` for the values of a section.

    A dataclass that is the base of several has a class method `choose(values, where)`, which returns this pair for the
    one that the values choose.
    """
    choose = getattr(cls, "choose", None)
    return choose(values, where) if choose else (cls, values)


def unknown_key(cls: "type[DataclassInstance]", full_key: str, key: str) -> str:
    """The message for a key that the dataclass `cls` lacks, with the nearest key of this section."""
    section = full_key[: -len(key)]
    here = {field.name: section + field.name for field in dataclasses.fields(cls)}
    hint = nearest_name(key, here) or f" Known here: {', '.join(here.values())}."
    return f"{full_key}: no such setting.{hint}"


def parse_override(text: str) -> tuple[str, Any]:
    """`"optimizer.learning_rate=1e-3"` → `("optimizer.learning_rate", value)`, the value parsed as YAML.

    Unlike in YAML, `{share:1.0}` needs no space after the colon.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UserError(f"--set {text}: needs the form section.key=value.")
    try:
        return key.strip(), _with_spaces(parse_yaml(value))
    except ValueError as error:
        raise UserError(f"--set {text}: {value!r} is not a YAML value ({error}).") from None


def _with_spaces(value: Any) -> Any:
    """A YAML value with `{key:value}`, which YAML parses as a key without a value, read as `{key: value}`."""
    if isinstance(value, list):
        return [_with_spaces(item) for item in value]
    if not isinstance(value, dict):
        return value
    mended = []
    for key, item in value.items():
        if item is None and isinstance(key, str) and ":" in key:
            key, _, text = key.partition(":")
            item = parse_yaml(text)
        mended.append((key, _with_spaces(item)))
    return unique_keys(mended)


def apply_overrides(
    cls: "type[DataclassInstance]", values: dict[str, Any], overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """A copy of `values` with each of `overrides` (`{dotted key: value}`) applied.

    A number selects an item of a list, of the default list if `values` has none: `phases.0.batch_size`. Raises
    `UserError` for a key that the dataclass `cls` lacks, naming the nearest key anywhere in it.
    """
    values = copy.deepcopy(values)
    for key, value in overrides.items():
        path = key.split(".")
        _check_path(cls, values, path, value)
        target: Any = values
        default: Any = defaults(cls)
        for depth, step in enumerate(path[:-1], start=1):
            default = default.get(step) if isinstance(default, dict) else getattr(default, step, None)
            target = _descend(target, step, key, default)
            if not isinstance(target, (dict, list)):
                raise UserError(f"{'.'.join(path[:depth])}: needs a section of settings. Received: {target!r}.")
        # A copy, as a later key may change a part of it.
        value = copy.deepcopy(value)
        if isinstance(target, list):
            target[_index(target, path[-1], key)] = value
        else:
            target[path[-1]] = value
    return values


def flattened(values: Any, where: str = "") -> dict[str, Any]:
    """Nested mappings and lists as `{"section.key": value}`."""
    flat: dict[str, Any] = {}
    items = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in items:
        if isinstance(value, (dict, list)) and value:
            flat.update(flattened(value, _dotted(where, str(key))))
        else:
            flat[_dotted(where, str(key))] = value
    return flat


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """`[(key, old value, new value)]` where two mappings differ, nested keys dotted."""
    old, new = flattened(old), flattened(new)
    both = {**old, **new}
    different = [key for key in both if old.get(key) != new.get(key)]
    # Leaves out an empty list or mapping that has items on the other side, as those items are listed.
    kept = [key for key in different if (key in old) == (key in new) or both[key] not in ([], {})]
    return [(key, old.get(key), new.get(key)) for key in kept]


class Setting(typing.NamedTuple):
    """One of the settings of a dataclass: its dotted key, the dataclass that has it, and its name and type there."""

    key: str
    owner: "type[DataclassInstance]"
    name: str
    kind: Any

    @property
    def section(self) -> "type[DataclassInstance] | None":
        """The dataclass of a section or of the items of a list; None for a value."""
        kind = typing.get_args(self.kind)[0] if typing.get_origin(self.kind) is list else self.kind
        return kind if dataclasses.is_dataclass(kind) and isinstance(kind, type) else None

    @property
    def meaning(self) -> str:
        return meanings(self.owner)[self.name]

    @property
    def default(self) -> Any:
        return defaults(self.owner).get(self.name, "")

    @property
    def takes(self) -> str:
        """The values that it takes, in the words of its error message."""
        return needed(self.kind) + (", or null" if type(None) in typing.get_args(self.kind) else "")


def needed(kind: Any) -> str:
    """The values of a type, except null, in the words of messages."""
    kinds = parts_of(kind)
    if len(kinds) > 1:
        *others, last = [word for one in kinds for word in _alternatives(one)]
        return f"{', '.join(others)} or {last}"
    origin, inner = typing.get_origin(kinds[0]), typing.get_args(kinds[0])
    if origin is Literal:
        return f"one of {', '.join(inner)}" if len(inner) > 1 else inner[0]
    if origin is Annotated:
        number, words = needed(inner[0]), inner[1].words
        if words.startswith("a value "):
            return number + words.removeprefix("a value")
        return words if words.startswith("a ") or inner[0] is str else f"{number}, {words}"
    if origin in (list, tuple):
        return "a list of text" if inner[0] is str else f"a list, each {needed(inner[0])}"
    if origin is dict:
        return f"a mapping, each {needed(inner[1])}"
    return _TYPES[kinds[0]].replace("finite ", "")


def _alternatives(kind: Any) -> Sequence[str]:
    if kind is bool:
        return ("true", "false")
    return typing.get_args(kind) if typing.get_origin(kind) is Literal else (needed(kind),)


def parts_of(kind: Any) -> list[Any]:
    """The types in a union, except null; any other type by itself."""
    if typing.get_origin(kind) not in (typing.Union, types.UnionType):
        return [kind]
    return [one for one in typing.get_args(kind) if one is not type(None)]


def settings_of(cls: "type[DataclassInstance]", where: str = "") -> list[Setting]:
    """The settings of a dataclass, with its sections but not what is in them."""
    return [Setting(_dotted(where, name), cls, name, kind) for name, kind in types_of(cls).items()]


def every_setting(cls: "type[DataclassInstance]", where: str = "") -> Iterator[Setting]:
    """The settings of a dataclass and of those nested in it; for a list, of its first item: `phases.0.share`."""
    for found in settings_of(cls, where):
        yield found
        if found.section:
            yield from every_setting(found.section, found.key if found.section is found.kind else f"{found.key}.0")


@functools.cache
def meanings(cls: type) -> dict[str, str]:
    """`{field: its meaning}`, from the `Attributes:` in the docstrings of a dataclass and its bases."""
    found = {}
    for base in reversed(cls.__mro__):
        _, _, attributes = inspect.cleandoc(base.__doc__ or "").partition("Attributes:\n")
        of_fields, _, _ = attributes.partition("\n\n")
        for name, text in re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", of_fields, re.MULTILINE):
            found[name] = " ".join(text.split())
    return found


def with_defaults(cls: type[_Dataclass]) -> _Dataclass:
    """An instance with the default values, and "" for texts without one."""
    return cls(**dict.fromkeys(required(cls), ""))


def required(cls: type) -> list[str]:
    """The fields of a dataclass that have no default."""
    return [name for name in types_of(cls) if name not in defaults(cls)]


def defaults(cls: type) -> dict[str, Any]:
    """`{field: its default}` of a dataclass."""
    found = {}
    for item in dataclasses.fields(cls):
        if item.default is not dataclasses.MISSING:
            found[item.name] = item.default
        elif item.default_factory is not dataclasses.MISSING:
            found[item.name] = item.default_factory()
    return found


def _check_path(cls: "type[DataclassInstance]", values: Any, path: list[str], value: Any) -> None:
    kind = cls
    for depth, step in enumerate(path):
        if dataclasses.is_dataclass(kind):
            section = values if isinstance(values, dict) else {}
            # The value itself may choose the class, as `model.model_type` does.
            section = {**section, step: value} if depth == len(path) - 1 else section
            kind, _ = chosen(kind, section, ".".join(path[:depth]))
            hints = types_of(kind)
            if step not in hints:
                full = ".".join(path)
                keys = [setting.key for setting in every_setting(cls)]
                nearest = difflib.get_close_matches(full, keys, n=1) or [
                    key for key in keys if key.rsplit(".", 1)[-1] == path[-1]
                ]
                hint = f" The nearest is {nearest[0]}." if nearest else f" Known: {', '.join(hints)}."
                raise UserError(f"{full}: no such setting.{hint}")
            kind = hints[step]
            values = values.get(step) if isinstance(values, dict) else None
        elif typing.get_origin(kind) in (list, dict):
            kind = typing.get_args(kind)[-1]
        elif kind is not dict:
            raise UserError(f"{'.'.join(path)}: {'.'.join(path[:depth])} is a value, not a section.")


def _descend(target: Any, step: str, key: str, default: Any) -> Any:
    if isinstance(target, list):
        return target[_index(target, step, key)]
    if target.get(step) is None:
        target[step] = {}
        if isinstance(default, list):
            has_sections = any(map(dataclasses.is_dataclass, default))
            target[step] = list(map(to_mapping, default)) if has_sections else list(default)
    return target[step]


def _index(items: list, step: str, key: str) -> int:
    if not step.isdecimal() or int(step) >= len(items):
        known = f"an index from 0 to {len(items) - 1}" if items else "the whole list, which is empty"
        raise UserError(f"{key}: needs {known}. Received: {step!r}.")
    return int(step)


def _convert(kind: Any, value: Any, where: str) -> Any:
    """`value` as the type hint `kind`; numbers may be text, because YAML reads 1e-4 as text."""
    if value is None and type(None) in typing.get_args(kind):
        return None
    kinds = parts_of(kind)
    if len(kinds) > 1:
        for one in kinds:
            with contextlib.suppress(UserError):
                return _convert(one, value, where)
        raise _refused(where, needed(kind), value)
    (kind,) = kinds
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        value = _convert(inner[0], value, where)
        for rule in inner[1:]:
            if not rule.hold(value):
                raise _refused(where, rule.words, value)
        return value
    if origin is Literal:
        if value in inner:
            return value
        raise _refused(where, needed(kind), value)
    if origin in (list, tuple):
        if not isinstance(value, (list, tuple)):
            raise _refused(where, "a list", value)
        return origin(_convert(inner[0], item, f"{where}.{index}") for index, item in enumerate(value))
    if origin is dict:
        for key in (value := _convert(dict, value, where)):
            if inner[0] is str and not isinstance(key, str):
                raise _refused(where, "names that are text", key)
        if dataclasses.is_dataclass(inner[1]):  # A name with nothing after it has the defaults.
            value = {key: {} if item is None else item for key, item in value.items()}
        # YAML cannot write a NumPy key, such as a label from `unique`.
        plain = {key.item() if hasattr(key, "item") else key: item for key, item in value.items()}
        return {key: _convert(inner[1], item, f"{where}.{key}") for key, item in plain.items()}
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return value if isinstance(value, kind) else from_mapping(kind, value, where)
    if kind is float and not isinstance(value, bool):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            if math.isfinite(number := float(value)):
                return number
    elif kind is int and not isinstance(value, bool):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            if (number := float(value)) == int(number):
                return int(value) if isinstance(value, int) else int(number)
    elif isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        return value
    raise _refused(where, _TYPES.get(kind, kind.__name__), value)


def _refused(where: str, needed: str, value: object) -> UserError:
    return UserError(f"{where}: needs {needed}. Received: {value!r}.")


def _dotted(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def require(condition: object, key: str, needed: str, received: object) -> None:
    """Raises `ValueError` unless the condition holds; `settings.from_mapping` adds the section to the message."""
    if not condition:
        raise ValueError(f"{key}: needs {needed}. Received: {received!r}.")


def require_multiple(settings_object: object, divisor: str, *keys: str) -> None:
    """Raises `ValueError` unless each of the named settings is a multiple of the setting named `divisor`."""
    step = getattr(settings_object, divisor)
    for key in keys:
        value = getattr(settings_object, key)
        below = value // step * step
        nearest = f"{below} or {below + step}" if below else f"{step}"
        require(value % step == 0, key, f"a multiple of {divisor} ({step}), the nearest being {nearest}", value)
