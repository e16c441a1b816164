"""`run.py settings`."""

import functools
import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import click

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import config_names, find_config
from keras_bert.core.errors import UserError, nearest_name
from keras_bert.core.settings import Setting, every_setting, to_mapping, with_defaults
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import model_kinds, with_article

_CONFIGS: dict[str, type[Any]] = {"pretrain": PretrainConfig, "finetune": FinetuneConfig}
_FOLDERS = {"pretrain": ("pretrain",), "finetune": ("finetune", "features")}
_WIDTH, _LONGEST = 100, 40


@click.command()
@click.argument("words", nargs=-1, metavar="[pretrain|finetune] [KEY]")
def settings(words: tuple[str, ...]) -> None:
    """List the settings of recipes: their defaults, meanings and valid values, and the recipes that change them.

    KEY is a setting, a section, or a part of a name. Change a setting in a recipe or, for one run, with
    --set KEY=VALUE.

    \b
    Examples:
      python run.py settings finetune
      python run.py settings optimizer.learning_rate
      python run.py settings dropout
    """
    commands = [word for word in words if word in _CONFIGS] or list(_CONFIGS)
    keys = [word for word in words if word not in _CONFIGS]
    found = {command: [item for key in keys or [""] for item in settings_like(command, key)] for command in commands}
    for key in keys:
        if not any(settings_like(command, key) for command in commands):
            raise UserError(f"{key}: no such setting.{_nearest(key, commands)}")
    for command, listed in found.items():
        if listed:
            click.echo(f"Settings of {command}\n")
            recipes = _recipes(command)
            for setting in listed:
                click.echo("\n".join(_lines(setting, recipes)))


def settings_like(command: str, key: str) -> list[Setting]:
    """The settings of `pretrain` or `finetune` with `key` as whole parts of their keys, or else within the last one."""
    every, key = list(_settings(command)), re.sub(r"\.\d+\b", ".0", key.lstrip("-").replace("-", "_"))
    exact = [setting for setting in every if f".{key}." in f".{setting.key}."]
    return exact or [setting for setting in every if key in setting.key.rpartition(".")[2]]


def settings_named(command: str, option: str, with_similar: bool) -> list[str]:
    """The keys of a command's settings with the name of an unknown option or, `with_similar`, one like it."""
    found = settings_like(command, option) if command in _CONFIGS else []
    name = option.lstrip("-").replace("-", "_")
    like = [setting.key for setting in found if not setting.section and (with_similar or setting.name == name)]
    return list(dict.fromkeys(like))


def _settings(command: str) -> Iterator[Setting]:
    """The settings of a command; those of other kinds of models, if they differ, follow BERT's."""
    for setting in every_setting(_CONFIGS[command]):
        if setting.key == "initialization" and command == "pretrain":
            for kind in model_kinds():
                of_kind = every_setting(kind.config, "model")
                yield from (own for own in of_kind if own.default != getattr(BertConfig, own.name, None))
        yield setting


def _nearest(key: str, commands: Sequence[str]) -> str:
    by_name = {name: item.key for command in commands for item in _settings(command) for name in (item.name, item.key)}
    return nearest_name(key.replace("-", "_"), by_name) or " Leave KEY out for all of them."


@functools.cache
def _recipes(command: str) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """`{name: (its settings, the defaults of its kind of model)}`."""
    config, recipes = _CONFIGS[command], {}
    for folder in _FOLDERS[command]:
        for name in config_names(folder):
            recipe = config.from_file(find_config(folder, name))
            name = name if folder == command else f"{folder}/{name}"
            defaults = to_mapping(with_defaults(config))
            if command == "pretrain":
                defaults["model"] = to_mapping(type(recipe.model)())
            recipes[name] = (to_mapping(recipe), defaults)
    return recipes


def _lines(setting: Setting, recipes: dict[str, tuple[dict[str, Any], dict[str, Any]]]) -> Iterator[str]:
    meaning = setting.meaning[0].upper() + setting.meaning[1:]
    kind = next((kind for kind in model_kinds()[1:] if kind.config is setting.owner), None)
    if kind:
        meaning = f"Of {with_article(kind.title)}: {setting.meaning}"
    if setting.section:
        yield from (f"{setting.key}", *_wrapped(meaning), "")
        return
    yield f"{setting.key}={_shown(setting.default)}"
    yield from (*_wrapped(meaning), *_wrapped(f"Takes {setting.takes}."))
    changes: dict[str, list[str]] = {}
    for name, (values, defaults) in recipes.items():
        value, default = (_values(mapping, setting.key.split(".")) for mapping in (values, defaults))
        if set(value) - {name} - set(default):
            changes.setdefault(" then ".join(dict.fromkeys(value)), []).append(name)
    if changes:
        parts = (f"{value} in {', '.join(names)}" for value, names in changes.items())
        yield from _wrapped(f"Recipes: {'; '.join(parts)}.")
    yield ""


def _values(values: Any, path: Sequence[str]) -> list[str]:
    """The values of a recipe at this path, as shown; of a list, those of each item."""
    if not path:
        return [_shown(values)]
    if isinstance(values, list):
        return [value for item in values for value in _values(item, path[1:])]
    return _values(values[path[0]], path[1:]) if path[0] in values else []


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
