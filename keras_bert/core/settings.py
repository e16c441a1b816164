"""Converts mappings to dataclasses and back, and names every unknown key, wrong type and invalid value.

The mechanics only; the settings themselves are in `config/`.
"""

import contextlib
import copy
import dataclasses
import difflib
import inspect
import json
import math
import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import yaml

from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath, open_file

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Dataclass = typing.TypeVar("_Dataclass", bound="DataclassInstance")
_TYPES = {int: "a whole number", float: "a finite number", bool: "true or false", str: "text", dict: "a mapping"}


def read_yaml(path: StrPath) -> dict[Any, Any]:
    """The mapping in a YAML (or JSON) file. Raises `UserError` naming the file and the line."""
    text = _read_text(path, "YAML")
    try:
        values = _load(text)
    except _NOT_YAML as error:
        mark = getattr(error, "problem_mark", None)
        where = f" line {mark.line + 1}" if mark else ""
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        raise UserError(f"{path}:{where} is not valid YAML ({problem}).") from None
    if not isinstance(values, dict):
        raise UserError(f"{path}: needs settings as `key: value`. Received: {type(values).__name__}.")
    return values


def read_json(path: StrPath) -> dict[str, Any]:
    """The object in a JSON file. Raises `UserError` naming the file and the line."""
    text = _read_text(path, "JSON")
    try:
        values = json.loads(text, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: is not valid JSON ({error}). Fetch or write it again.") from None
    if not isinstance(values, dict):
        raise UserError(f"{path}: needs a JSON object. Received: {type(values).__name__}.")
    return values


class _Loader(yaml.SafeLoader):
    """Takes a key as it is written (`yes` and 1 are names of labels too), and refuses one that is given twice."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        assert node is not None
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be text", problem_mark=key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value!r} is given twice", problem_mark=key.start_mark)
            seen.add(key.value)
            if key.value != "<<":  # Merges another mapping.
                key.tag = self.DEFAULT_SCALAR_TAG
        return node


# What else than its own errors the library raises, for values such as `!!bool 3` or brackets too deep.
_NOT_YAML = (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError)


def _load(text: str) -> Any:
    return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader.


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, of which the standard library would keep the last of several equal keys."""
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"{next(key for key in keys if keys.count(key) > 1)!r} is given twice")
    return values


def _read_text(path: StrPath, kind: str) -> str:
    try:
        with open_file(path) as stream:
            return stream.read().decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}).") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text; a {kind} file is needed.") from None


def to_mapping(settings: "DataclassInstance") -> dict[str, Any]:
    """A dataclass as a plain mapping; `from_mapping` turns it back into an equal object."""
    return dataclasses.asdict(settings)


def to_yaml(settings: "DataclassInstance") -> str:
    """A dataclass as YAML."""
    return yaml.safe_dump(to_mapping(settings), sort_keys=False, allow_unicode=True)


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
    hints = typing.get_type_hints(cls)
    fields = {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}
    for key in values:
        if key not in fields:
            raise UserError(unknown_key(cls, _dotted(where, str(key)), str(key)))
    arguments = {key: _convert(fields[key], value, _dotted(where, key)) for key, value in values.items()}
    missing = [
        field.name
        for field in dataclasses.fields(cls)
        if field.init
        and field.name not in values
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    if missing:
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

    A dataclass with a class method `choose(values, where)` of this result is the base of several, of which the values
    choose one.
    """
    choose = getattr(cls, "choose", None)
    return choose(values, where) if choose else (cls, values)


def unknown_key(cls: "type[DataclassInstance]", full_key: str, key: str) -> str:
    """The message for a key that the dataclass `cls` lacks, with the nearest key of this section."""
    section = full_key[: -len(key)]
    here = {section + field.name: field.name for field in dataclasses.fields(cls)}
    nearest = difflib.get_close_matches(key, here.values(), n=1)
    if nearest:
        return f"{full_key}: no such setting. The nearest is {section}{nearest[0]}."
    return f"{full_key}: no such setting. Known here: {', '.join(here)}."


def parse_override(text: str) -> tuple[str, Any]:
    """`"optimizer.learning_rate=1e-3"` → `("optimizer.learning_rate", value)`, the value parsed as YAML.

    Unlike in YAML, `{share:1.0}` needs no space after the colon.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UserError(f"--set {text}: needs the form section.key=value.")
    try:
        return key.strip(), _with_spaces(_load(value))
    except _NOT_YAML:
        raise UserError(f"--set {text}: {value!r} is not a YAML value.") from None


def _with_spaces(value: Any) -> Any:
    """A YAML value with `{key:value}`, which YAML parses as a key without a value, read as `{key: value}`."""
    if isinstance(value, list):
        return [_with_spaces(item) for item in value]
    if not isinstance(value, dict):
        return value
    mended = {}
    for key, item in value.items():
        if item is None and isinstance(key, str) and ":" in key:
            key, _, text = key.partition(":")
            item = _load(text)
        mended[key] = _with_spaces(item)
    return mended


def apply_overrides(
    cls: "type[DataclassInstance]", values: dict[str, Any], overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """A copy of `values` with each of `overrides` (`{dotted key: value}`) applied.

    A number selects an item of a list: `phases.0.batch_size`. Raises `UserError` for a key that the dataclass `cls`
    lacks, naming the nearest key anywhere in it.
    """
    values = copy.deepcopy(values)
    for key, value in overrides.items():
        path = key.split(".")
        _check_path(cls, values, path, value)
        target: Any = values
        for depth, step in enumerate(path[:-1], start=1):
            target = _descend(target, step, key)
            if not isinstance(target, (dict, list)):
                raise UserError(f"{'.'.join(path[:depth])}: needs a section of settings. Received: {target!r}.")
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
    return [(key, old.get(key), new.get(key)) for key in {**old, **new} if old.get(key) != new.get(key)]


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
        return getattr(with_defaults(self.owner), self.name)

    @property
    def takes(self) -> str:
        """The values that it takes: its type, and in the words in which the dataclass refuses others, which of it."""
        origin, inner = typing.get_origin(self.kind), typing.get_args(self.kind) or (self.kind,)
        *_, last = kinds = [kind for kind in inner if kind is not type(None)]
        refused: Any = {int: -1, float: -1.0, str: "?", dict: {"?": -1}}.get(last)
        needed = "" if refused is None else _needed(self.owner, self.name, [refused] if origin is list else refused)
        text = " or ".join(_TYPES[kind].replace("finite ", "") for kind in kinds)
        if origin is list or last is dict:
            text = f"a list of {text}" if origin is list else text
            return f"{text}, each {needed}" if needed else text
        if needed.startswith("a value "):
            text += needed.removeprefix("a value")
        elif last is str or needed.startswith("a "):
            text = needed or text
        elif needed:
            text += f", {needed}"
        return f"{text}, or null" if type(None) in inner else text


def every_setting(cls: "type[DataclassInstance]", where: str = "") -> Iterator[Setting]:
    """The settings of a dataclass and the dataclasses in it, of a list those of its first item: `phases.0.share`."""
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        yield (found := Setting(_dotted(where, field.name), cls, field.name, hints[field.name]))
        if found.section:
            yield from every_setting(found.section, found.key if found.section is found.kind else f"{found.key}.0")


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
    """The dataclass with its defaults, and "" for the texts that have none."""
    none = dataclasses.MISSING
    return cls(**{item.name: "" for item in dataclasses.fields(cls) if item.default is item.default_factory is none})


def _needed(cls: "type[DataclassInstance]", name: str, value: Any) -> str:
    """What a dataclass says that a field needs, on being given this value; "" if it takes it."""
    try:
        dataclasses.replace(with_defaults(cls), **{name: value})
    except ValueError as error:
        found = re.search(r": needs (.*)\. Received: ", str(error))
        return found[1] if found else ""
    return ""


def _check_path(cls: "type[DataclassInstance]", values: Any, path: list[str], value: Any) -> None:
    kind = cls
    for depth, step in enumerate(path):
        if dataclasses.is_dataclass(kind):
            section = values if isinstance(values, dict) else {}
            # The value itself may choose the class, as `model.model_type` does.
            section = {**section, step: value} if depth == len(path) - 1 else section
            kind, _ = chosen(kind, section, ".".join(path[:depth]))
            hints = typing.get_type_hints(kind)
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
        elif typing.get_origin(kind) is list:
            kind = typing.get_args(kind)[0]
        elif kind is not dict:
            raise UserError(f"{'.'.join(path)}: {'.'.join(path[:depth])} is a value, not a section.")


def _descend(target: Any, step: str, key: str) -> Any:
    if isinstance(target, list):
        return target[_index(target, step, key)]
    if target.get(step) is None:
        target[step] = {}
    return target[step]


def _index(items: list, step: str, key: str) -> int:
    if not step.isdigit() or int(step) >= len(items):
        raise UserError(f"{key}: needs an index from 0 to {len(items) - 1}. Received: {step!r}.")
    return int(step)


def _convert(kind: Any, value: Any, where: str) -> Any:
    """`value` as the type hint `kind`; numbers may be text, because YAML reads 1e-4 as text."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        *others, last = (item for item in inner if item is not type(None))
        for other in others:
            with contextlib.suppress(UserError):
                return _convert(other, value, where)
        return _convert(last, value, where)
    if origin is list:
        if not isinstance(value, (list, tuple)):
            raise _wrong_type(where, "a list", value)
        return [_convert(inner[0], item, f"{where}.{index}") for index, item in enumerate(value)]
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return value if isinstance(value, kind) else from_mapping(kind, value, where)
    if kind is float and not isinstance(value, bool):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            if math.isfinite(number := float(value)):
                return number
    elif kind is int and not isinstance(value, bool):
        try:
            number = float(value)
            if number == int(number):
                return int(value) if isinstance(value, int) else int(number)
        except (TypeError, ValueError, OverflowError):
            pass
    elif isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        return value
    raise _wrong_type(where, _TYPES.get(kind, kind.__name__), value)


def _wrong_type(where: str, needed: str, value: object) -> UserError:
    return UserError(f"{where}: needs {needed}. Received: {value!r}.")


def _dotted(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


MAX_SEED = 2**32 - 1


def require(condition: object, key: str, needed: str, received: object) -> None:
    """Raises `ValueError` unless the condition holds; `settings.from_mapping` adds the section to the message."""
    if not condition:
        raise ValueError(f"{key}: needs {needed}. Received: {received!r}.")


def require_share(key: str, value: float) -> None:
    """Raises `ValueError` unless the value is from 0 to 1."""
    require(0.0 <= value <= 1.0, key, "a share from 0 to 1", value)


def require_seed(seed: int) -> None:
    """Raises `ValueError` unless all generators of random numbers take the seed: NumPy's takes 32 bits."""
    require(0 <= seed <= MAX_SEED, "seed", f"a whole number from 0 to {MAX_SEED}", seed)


def require_multiple(settings_object: object, divisor: str, *keys: str) -> None:
    """Raises `ValueError` unless each of the named settings is a multiple of the setting named `divisor`."""
    step = getattr(settings_object, divisor)
    for key in keys:
        value = getattr(settings_object, key)
        below = value // step * step
        nearest = f"{below} or {below + step}" if below else f"{step}"
        require(value % step == 0, key, f"a multiple of {divisor} ({step}), the nearest being {nearest}", value)


def require_positive(settings_object: object, *keys: str) -> None:
    """Raises `ValueError` unless each of the named settings is larger than 0, and finite, or None."""
    for key in keys:
        value = getattr(settings_object, key)
        require(value is None or 0 < value < math.inf, key, "a value above 0", value)
