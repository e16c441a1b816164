"""Where recipes are, and how one extends another."""

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from keras_bert.core import settings
from keras_bert.core.errors import UserError, nearest_name
from keras_bert.core.files import exists, is_folder, list_folder
from keras_bert.core.yaml_and_json import read_yaml
from keras_bert.models.bert.config import BertConfig

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def extended_model(values: str | dict[str, Any], folder: str) -> dict[str, Any]:
    """The `BertConfig` fields of a recipe's `model`, which is the name of a model or fields that may extend one."""
    if isinstance(values, str):
        values = {"extends": values}
    if not isinstance(values, dict) or "extends" not in values:
        return values
    values = dict(values)
    base = settings.to_mapping(BertConfig.from_file(find_config("models", values.pop("extends"), folder)))
    return {**base, **values}


def by_setting(cls: "type[DataclassInstance]", values: Mapping[str, Any]) -> dict[str, Any]:
    """`{dotted key: value}` for settings by key, so that a section keeps what its mapping does not name.

    Args:
        cls: the recipe's dataclass, such as `PretrainConfig`.
        values: a section may have a mapping of its settings as the value; one that `extends` a file stays whole.
    """
    found: dict[str, Any] = {}
    keys = [setting.key for setting in settings.every_setting(cls)]
    for key, value in values.items():
        section = re.sub(r"\.\d+\b", ".0", key)  # `keys` have the first item of a list.
        # Not a list's: it is refused as a mapping.
        is_section = isinstance(value, Mapping) and any(re.match(rf"{section}\.(?!0\.)", other) for other in keys)
        if not is_section or "extends" in value:
            found[key] = value
        else:
            found |= by_setting(cls, {f"{key}.{name}": item for name, item in value.items()})
    return found


def name_from_file(path: str | os.PathLike[str]) -> str:
    """The name of a recipe that does not state one: its file's."""
    return os.path.splitext(os.path.basename(os.fspath(path)))[0]


def configs_folder() -> str:
    """The folder of the recipes: beside the package in a checkout, inside it in an installed copy."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    inside = os.path.join(package, "configs")
    return inside if os.path.isdir(inside) else os.path.join(os.path.dirname(package), "configs")


def find_config(kind: str, name: str, folder: str = "") -> str:
    """The file of a config given by its path (also relative to `folder`) or by its name in configs/`kind`.

    Raises:
        UserError: there is no such file; the message lists the names in configs/`kind`.
    """
    known = os.path.join(configs_folder(), kind)
    if not isinstance(name, str):
        raise UserError(f"configs/{kind}: has files with names, to be given as text. Received: {name!r}.")
    for path in (name, os.path.join(folder, name), os.path.join(known, f"{name}.yaml")):
        if exists(path) and not is_folder(path):
            return path
    names = config_names(kind)
    hint = nearest_name(name_from_file(name).lower(), names)
    raise UserError(f"{name}: no such config.{hint} Give a file, or one of configs/{kind}: {', '.join(names)}.")


def config_names(kind: str) -> list[str]:
    """The names of the configs in configs/`kind`."""
    return sorted(os.path.splitext(entry)[0] for entry in list_folder(os.path.join(configs_folder(), kind)))


def recipe_init(recipe_file: str) -> str | None:
    """The recipe's own `init`, the model it starts from, or None."""
    return settings.text_of(read_yaml(recipe_file), "init")


def recipe_name(recipe_file: str, overrides: Mapping[str, Any]) -> str:
    """The name of a recipe: from the overrides, else its own, else the file's."""
    named = settings.text_of({**read_yaml(recipe_file), **overrides}, "name")
    return named or name_from_file(recipe_file)


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are not None."""
    return {key: value for key, value in values.items() if value is not None}
