"""Reads YAML and JSON files, and writes YAML. Messages name the file and the line."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath, is_file, read_file


def read_yaml(path: StrPath) -> dict[Any, Any]:
    """The mapping in a YAML (or JSON) file. Raises `UserError` naming the file and the line."""
    text = _read_text(path, "YAML")
    try:
        values = parse_yaml(text)
    except NotYaml as error:
        where = f" line {error.line}" if error.line else ""
        raise UserError(f"{path}:{where} is not valid YAML ({error}).") from None
    if not isinstance(values, dict):
        raise UserError(f"{path}: needs settings as `key: value`. Received: {type(values).__name__}.")
    return values


def read_json(path: StrPath) -> dict[str, Any]:
    """The object in a JSON file. Raises `UserError` naming the file and the line."""
    return _read_json(path, dict, "object")


def read_if_there(path: StrPath) -> dict[str, Any]:
    """The object in a JSON file; empty without the file."""
    return read_json(path) if is_file(path) else {}


def read_json_list(path: StrPath) -> list[Any]:
    """The array in a JSON file. Raises `UserError` naming the file and the line."""
    return _read_json(path, list, "array")


def _read_json(path: StrPath, kind: type, name: str) -> Any:
    text = _read_text(path, "JSON")
    try:
        values = parse_json(text, unique_keys)
    except ValueError as error:
        raise UserError(f"{path}: is not valid JSON ({error}). Fetch or write it again.") from None
    if not isinstance(values, kind):
        raise UserError(f"{path}: needs a JSON {name}. Received: {type(values).__name__}.")
    return values


class _Loader(yaml.SafeLoader):
    """Reads every key as text, because `yes` and 1 may be names of labels, and refuses a key that is given twice."""

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


class _Dumper(yaml.SafeDumper):
    """Escapes U+0085, which ends a line in YAML: the library writes it unescaped, and reads it back as a blank."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        style = '"' if "\x85" in data else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)


_Dumper.add_representer(str, _Dumper.represent_str)


class NotYaml(ValueError):
    """Text that is not YAML, and why.

    Attributes:
        line: its number, from 1; None where the library does not say.
    """

    def __init__(self, problem: str, line: int | None):
        super().__init__(problem)
        self.line = line


def parse_json(
    content: str | bytes, made_of_pairs: Callable[[list[tuple[str, Any]]], dict[str, Any]] | None = None
) -> Any:
    """The value that JSON stands for. Raises `ValueError`, also if it is nested too deep to be read.

    Args:
        made_of_pairs: makes an object of its keys and values; None for `dict`.
    """
    try:
        return json.loads(content, object_pairs_hook=made_of_pairs)
    except RecursionError as error:
        raise ValueError(str(error)) from None


def parse_yaml(text: str) -> Any:
    """The value that YAML text stands for. Raises `NotYaml`."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader.
    # The library's own errors, and those that it raises for values such as `!!bool 3` or brackets nested too deep.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        raise NotYaml(problem, mark.line + 1 if mark else None) from None


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping of these items; refuses a repeated key, of which `dict` would keep the last value."""
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"{next(key for key in keys if keys.count(key) > 1)!r} is given twice")
    return values


def _read_text(path: StrPath, kind: str) -> str:
    try:
        return read_file(path, "").decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text; a {kind} file is needed.") from None


def dump_yaml(values: Mapping[str, Any]) -> str:
    """A mapping as YAML, its keys in their order."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
