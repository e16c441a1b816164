"""Settings as keyword arguments: `steps=1000` sets `training.steps`, `masking={"unit": "span"}` part of a section."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from keras_bert.config.recipes import by_setting
from keras_bert.core import settings
from keras_bert.core.errors import UserError, nearest_name

if TYPE_CHECKING:
    import keras
    from _typeshed import DataclassInstance

LENGTHS = ("training.epochs", "training.steps", "training.minutes")


def keyword_settings(cls: type[DataclassInstance], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """`{dotted key: value}` for keyword arguments.

    Args:
        cls: the recipe's dataclass, such as `PretrainConfig`.
        keywords: named by a setting's key (`"optimizer.name"`), by its last part if that is unique, or by a section,
            with a mapping of its settings as the value.

    Raises:
        UserError: no setting has the name (the message names the nearest), several end with it, or it is given twice.
    """
    keys = [setting.key for setting in settings.every_setting(cls)]
    found: dict[str, Any] = {}
    for name, value in keywords.items():
        given = by_setting(cls, {_key_of(name, keys): value})
        require_once(found, given)
        found |= given
    return found


def _key_of(name: str, keys: list[str]) -> str:
    if "." in name or name in keys:
        return name  # Checked with the recipe, as is --set.
    ends = [key for key in keys if key.rsplit(".", 1)[-1] == name]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise UserError(f"{name}: needs its section. Received: a name that {' and '.join(ends)} have.")
    last = {key.rsplit(".", 1)[-1]: key for key in keys}
    hint = nearest_name(name, {end: f"{end} ({key})" for end, key in last.items()})
    raise UserError(f"{name}: no such argument or setting.{hint} `run.py settings` lists all.")


def path_of(argument: Any, name: str) -> str | None:
    """An argument that is a path or a name, as text; None for none. Raises `UserError` for others."""
    return settings.text_of({name: os.fspath(argument) if isinstance(argument, os.PathLike) else argument}, name)


def callbacks_of(given: Any) -> list[keras.callbacks.Callback]:
    """Keras callbacks, or a single one, as a list. Raises `UserError` for anything else. Imports Keras."""
    from keras.callbacks import Callback

    callbacks = list(given) if isinstance(given, Iterable) else [given]
    for one in callbacks:
        if not isinstance(one, Callback):
            raise UserError(f"callbacks: need to be Keras callbacks. Received: {one!r}.")
    return callbacks


def require_once(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Raises `UserError` if two mappings of settings by key give a setting different values."""
    for key in one:
        if key in other and one[key] != other[key]:
            raise UserError(f"{key}: needs to be given once. Received: {one[key]!r} and {other[key]!r}. Leave out one.")


def length_settings(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Like `other_lengths`, but raises `UserError` if more than one limit is chosen."""
    lengths = [key.removeprefix("training.") for key in LENGTHS if chosen.get(key)]
    if len(lengths) > 1:
        one, other = lengths[:2]
        raise UserError(f"{one}: needs to be the only length of the run. Received: {other} too. Leave out one.")
    return other_lengths(chosen)


def other_lengths(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """`{key: value}` that turn off a recipe's other length limits, if `chosen`, settings by key, sets one."""
    off: dict[str, Any] = {}
    if chosen.get("training.epochs"):
        off["training.steps"] = 0
    if chosen.get("training.epochs") or chosen.get("training.steps"):
        off["training.minutes"] = 0.0
    return {key: value for key, value in off.items() if not chosen.get(key)}
