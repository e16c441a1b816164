"""JSON schemas of the files in `configs/`, made from the settings, for editors to complete and check them."""

import dataclasses
import math
from typing import Annotated, Any, Literal, get_args, get_origin

from keras_bert.config.corpus import FilterConfig
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.initialization import NAMED, InitializationConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import config_names
from keras_bert.config.studies import AblationPlan, EmbryologyPlan, PilotsPlan, WorthTaskPlan
from keras_bert.core.settings import Bounds, parts_of, required, settings_of
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import model_kinds, with_article

# What each schema describes.
_KINDS: dict[str, Any] = {
    "pretrain": PretrainConfig,
    "finetune": FinetuneConfig,
    "model": BertConfig,
    "filters": FilterConfig,
    "ablation": AblationPlan,
    "embryology": EmbryologyPlan,
    "pilots": PilotsPlan,
    "worth": dict[str, WorthTaskPlan],
}
_TYPES = {int: "integer", float: "number", bool: "boolean", str: "string", dict: "object"}
# The sections that may name or extend a file, and the folders in configs that hold such files.
_FOLDERS = {BertConfig: "models", FilterConfig: "filters"}


def schemas() -> dict[str, dict[str, Any]]:
    """`{kind of file: its schema}`, of JSON Schema's draft 2020-12."""
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    found = {name: {**dialect, **_values(kind)} for name, kind in _KINDS.items()}
    found["model"] = {**dialect, **_object(BertConfig)}
    return found


def _values(kind: Any) -> dict[str, Any]:
    """The schema of the values of a type."""
    parts = [_values_of_one(part) for part in parts_of(kind)]
    may_be_null = type(None) in get_args(kind)
    if len(parts) > 1:
        return {"anyOf": [*parts, {"type": "null"}] if may_be_null else parts}
    (found,) = parts
    if may_be_null and "enum" in found:
        found["enum"].append(None)
    elif may_be_null:
        found["type"] = [found["type"], "null"]
    return found


def _values_of_one(kind: Any) -> dict[str, Any]:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin is Annotated and isinstance(inner[1], Bounds):
        return {"type": _TYPES[inner[0]], **_limits(inner[1])}
    if origin is Annotated:
        return {"enum": list(inner[1].names())}
    if origin is list:
        return {"type": "array", "items": _values(inner[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _values(inner[1])}
    return _section(kind) if dataclasses.is_dataclass(kind) else {"type": _TYPES[kind]}


def _limits(bounds: Bounds) -> dict[str, float]:
    limits = {"exclusiveMinimum" if bounds.min_open else "minimum": bounds.min}
    if math.isfinite(bounds.max):
        limits["exclusiveMaximum" if bounds.max_open else "maximum"] = bounds.max
    return limits


def _section(cls: Any) -> dict[str, Any]:
    """The settings of a dataclass, or what a recipe may name in their place."""
    section = _object(cls)
    if cls is InitializationConfig:
        return {"anyOf": [{"enum": list(NAMED)}, section]}
    if cls not in _FOLDERS:
        return section
    name = {"type": "string", "examples": config_names(_FOLDERS[cls])}
    extends = {"description": "The file whose settings these change: its name or path.", **name}
    return {"anyOf": [name, {**section, "properties": {"extends": extends, **section["properties"]}}]}


def _object(cls: Any) -> dict[str, Any]:
    properties = _properties(cls)
    if cls is BertConfig:
        # The file that the settings extend may say which kind of model it is, so the settings of all kinds are known.
        for kind in model_kinds():
            properties = {**_properties(kind.config, f"Of {with_article(kind.title)}: "), **properties}
        types = [kind.model_type for kind in model_kinds()]
        properties["model_type"] = {"description": "The kind of model.", "enum": types}
    found = {"type": "object", "properties": properties, "additionalProperties": False}
    # A fine-tuning recipe that names no task takes its own name as the task.
    needed = [] if cls is FinetuneConfig else required(cls)
    return {**found, "required": needed} if needed else found


def _properties(cls: Any, prefix: str = "") -> dict[str, Any]:
    properties = {}
    for setting in settings_of(cls):
        text = prefix + setting.meaning
        properties[setting.name] = {"description": text[0].upper() + text[1:], **_values(setting.kind)}
        if not setting.section and setting.name not in required(cls):
            properties[setting.name]["default"] = setting.default
    return properties
