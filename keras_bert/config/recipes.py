"""Where recipes lie and how one builds on another."""

import os

from keras_bert import settings
from keras_bert.config.bert import BertConfig
from keras_bert.errors import UserError
from keras_bert.files import exists, is_folder, list_folder


def extended_model(values, folder):
    """The mapping of `BertConfig` fields that a recipe's `model` stands for: a name, or fields that extend one."""
    if isinstance(values, str):
        values = {"extends": values}
    if not isinstance(values, dict) or "extends" not in values:
        return values
    values = dict(values)
    base = settings.to_mapping(BertConfig.from_file(find_config("models", values.pop("extends"), folder)))
    return {**base, **values}


def configs_folder():
    """The recipes: beside the package in a checkout, inside it in an installed copy."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    inside = os.path.join(package, "configs")
    return inside if os.path.isdir(inside) else os.path.join(os.path.dirname(package), "configs")


def find_config(kind, name, folder=""):
    """The file of a config given by path (also relative to `folder`) or by name in configs/`kind`."""
    known = os.path.join(configs_folder(), kind)
    for path in (name, os.path.join(folder, name), os.path.join(known, f"{name}.yaml")):
        if exists(path) and not is_folder(path):
            return path
    names = ", ".join(os.path.splitext(entry)[0] for entry in list_folder(known))
    raise UserError(f"{name}: no such config. Give a file, or one of configs/{kind}: {names}.")
