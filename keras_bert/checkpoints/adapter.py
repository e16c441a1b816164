"""Adapters in peft's format: LoRA's additions and the parts trained beside them, without the model that they add to.

A folder holds adapter_config.json and adapter_model.safetensors, whose names are those of transformers' class after
`base_model.model.`: `….query.lora_A.weight` [rank, in] and `….query.lora_B.weight` [out, rank] for the weight of
`….query`, and the tensors of whole modules.
"""

import math
import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from keras_bert.checkpoints.hub import HUB_NAME, PREFIX
from keras_bert.checkpoints.huggingface import (
    CONFIG,
    SafetensorsFile,
    named_for_classifier,
    places_in_classifier,
    write_safetensors,
)
from keras_bert.checkpoints.stored_tensors import StoredTensors, as_stored
from keras_bert.checkpoints.task_files import write_task_files
from keras_bert.core import files, whole_files
from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import read_json
from keras_bert.models.bert.config import require_class_names
from keras_bert.models.kind import ModelKind, bert_counterpart, kind_of_config
from keras_bert.models.tensor_names import StoredName, TensorName, lora_layers, model_variables

if TYPE_CHECKING:
    import keras

ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"

_WRAPPER, _A, _B = "base_model.model.", ".lora_A.weight", ".lora_B.weight"
# What peft calls the tasks of transformers' classes.
_TASK_TYPES = {
    "BertForSequenceClassification": "SEQ_CLS",
    "BertForTokenClassification": "TOKEN_CLS",
    "BertForQuestionAnswering": "QUESTION_ANS",
}
_MERGE = "Merge the adapter with peft (merge_and_unload), and give the merged model"
# Settings that are not supported, and the values that turn them off.
_NOT_READ = {
    "use_dora": (None, False),
    "bias": (None, "none"),
    "lora_bias": (None, False),
    "rank_pattern": (None, {}),
    "alpha_pattern": (None, {}),
    "layer_replication": (None,),
    "trainable_token_indices": (None,),
    "target_parameters": (None, []),
    # With other values, training began from changed weights of the base model, which the folder lacks.
    "init_lora_weights": (None, False, "gaussian", "eva", "orthogonal", True),
}


def is_adapter(folder: files.StrPath) -> bool:
    """Whether a folder holds an adapter."""
    return files.is_file(files.join(folder, ADAPTER_CONFIG))


class Adapter:
    """An adapter's settings.

    Attributes:
        base: the MODEL argument of the model that it adds to.
        rank: the rows of every `lora_A`.
        scale: the factor on the additions.
        fields: what replaces fields of that model's config.json, such as `id2label`.
    """

    def __init__(self, path: files.StrPath) -> None:
        """Raises `UserError` if it is not LoRA, or names no model."""
        self.path = path
        config_file = files.join(path, ADAPTER_CONFIG)
        config = read_json(config_file)
        if config.get("peft_type") != "LORA":
            raise UserError(f"{config_file}: needs peft_type LORA. Received: {config.get('peft_type')!r}. {_MERGE}.")
        for key, unused in _NOT_READ.items():
            if config.get(key) not in unused:
                raise UserError(f"{config_file}: needs {key} {unused[-1]!r}. Received: {config[key]!r}. {_MERGE}.")
        self.rank, alpha = config.get("r", 0), config.get("lora_alpha", 0)
        are_numbers = type(self.rank) is int and type(alpha) in (int, float)
        if not (are_numbers and self.rank > 0 and 0 < alpha < math.inf):
            raise UserError(f"{config_file}: needs the numbers r and lora_alpha, above 0. Write it again.")
        self.scale = alpha / (math.sqrt(self.rank) if config.get("use_rslora") else self.rank)
        self.base = _base(config_file, config)
        own = files.join(path, CONFIG)
        classes = [name for name, task in _TASK_TYPES.items() if task == config.get("task_type")]
        named = {"architectures": classes} if classes else {}
        self.fields: dict[str, Any] = read_json(own) if files.is_file(own) else named
        require_class_names(self.fields, own)


def _base(config_file: str, config: Mapping[str, Any]) -> str:
    name, revision = config.get("base_model_name_or_path"), config.get("revision")
    if not isinstance(name, str) or not name:
        raise UserError(f"{config_file}: needs base_model_name_or_path, the model that it adds to. Received: {name!r}.")
    # An adapter of a model on the hub may be in a folder of that name.
    if files.exists(name) and os.path.realpath(name) != os.path.realpath(files.parent(config_file)):
        return name
    of_hub = f"{PREFIX}{name}" + (f"@{revision}" if revision else "")
    if not HUB_NAME.fullmatch(of_hub):
        raise UserError(
            f"{config_file}: needs base_model_name_or_path, another folder that is there or a name on the hub. "
            f"Received: {name}. Write the folder's path into it."
        )
    return of_hub


class AdaptedTensors(StoredTensors):
    """The tensors of a model with an adapter: the model's plus the additions, and modules that the adapter replaces.

    Args:
        names: all names in the table.
    """

    def __init__(self, base: StoredTensors, adapter: Adapter, kind: ModelKind, names: Iterable[TensorName]) -> None:
        self._base, self._scale = base, adapter.scale
        weights = files.join(adapter.path, ADAPTER_WEIGHTS)
        stored = [name.huggingface for name in names]
        known = {name for item in stored for name in (item.name, *item.copies)}
        self._own = _AdapterTensors(weights, kind, known, adapter.rank)
        super().__init__(weights, {**base.places, **self._own.places}, base.others)

    def holder(self, name_in_file: str) -> StoredTensors:
        return self._own if name_in_file in self._own.places.values() else self._base

    def holds(self, name: TensorName) -> bool:
        return self._own.holds(name) or self._base.holds(name)

    def stored_name(self, name: TensorName) -> str:
        return (self._own if self._own.holds(name) else self._base).stored_name(name)

    def read(self, name: TensorName, shape: tuple[int, ...] | None = None) -> npt.NDArray[np.float32]:
        if self._own.holds(name):
            return self._own.read(name, shape)
        value = self._base.read(name, shape)
        addition = self._own.addition(name.huggingface, value.shape[::-1])
        return value if addition is None else value + np.float32(self._scale) * addition.T

    def unused(self, names: Iterable[TensorName]) -> list[str]:
        names = list(names)
        replaced = {self._base.places.get(name) for name in self._own.places}
        return sorted({*self._base.unused(names)} - replaced | {*self._own.unused(names)})


class _AdapterTensors(StoredTensors):
    """The tensors in an adapter's file, whose LoRA has this rank; `known` are the names in the table."""

    column = "huggingface"

    def __init__(self, path: str, kind: ModelKind, known: set[str], rank: int) -> None:
        self._file, self._rank = SafetensorsFile(path), rank
        self._factors: dict[str, tuple[str, str]] = {}
        modules = {name.removeprefix(_WRAPPER): name for name in self._file.names}
        of_classifier = places_in_classifier(modules, kind, "", known)
        places, others = {own: modules[theirs] for own, theirs in of_classifier.items()}, []
        for rest, name in modules.items():
            is_factor = rest.endswith((_A, _B))
            weight = f"{rest.removesuffix(_A).removesuffix(_B)}.weight" if is_factor else rest
            found = next((one for one in (weight, f"{kind.stored_prefix}{weight}") if one in known), None)
            if is_factor and found:
                module = name.removesuffix(_A).removesuffix(_B)
                self._factors[found] = f"{module}{_A}", f"{module}{_B}"
            elif found:
                places.setdefault(found, name)
            elif rest not in of_classifier.values():
                others.append(name)
        if others:
            raise UserError(
                f"{path}: needs LoRA of dense layers, or whole modules, of {kind.title}. Received: {others[0]}. "
                "Is it another kind of model?"
            )
        super().__init__(path, places, [])

    def holder(self, name_in_file: str) -> SafetensorsFile:
        return self._file

    def addition(self, name: StoredName, shape: tuple[int, ...]) -> npt.NDArray[np.float32] | None:
        """B · A [out, in], which must have `shape`, for a tensor of the table; None if the adapter has none for it.

        Raises `UserError` if the tensor's copies have other additions.
        """
        addition = self._product(name.name, shape)
        for copy in name.copies:
            again = self._product(copy, shape)
            if again is None or addition is None:
                is_same = again is addition
            else:
                is_same = np.array_equal(again, addition)
            if not is_same:
                raise UserError(
                    f"{self.path}: needs the same LoRA of {copy} as of {name.name}, with which the model shares it, "
                    f"and it differs. {_MERGE} with sharing: none in config.json."
                )
        return addition

    def _product(self, name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float32] | None:
        if name not in self._factors:
            return None
        a, b = self._factors[name]
        for factor in (a, b):
            if factor not in self._file.names:
                raise UserError(f"{self.path}: needs the tensor {factor} and lacks it. Write the adapter again.")
        return self._checked(b, (*shape[:1], self._rank)) @ self._checked(a, (self._rank, *shape[1:]))


def write_adapter(
    path: files.StrPath, model: "keras.Model", base: str, base_path: str, fields: Mapping[str, Any]
) -> None:
    """Writes a model's LoRA additions, and what is trained beside them, in a form that peft opens.

    Args:
        path: replaced if it exists.
        model: a model whose encoder has LoRA.
        base: the MODEL argument of the model that it was trained from.
        base_path: the folder of that model.
        fields: the config.json of the trained model, which is written too, for the names of the labels.
    """
    layers, kind = lora_layers(model), kind_of_config(model.config)
    architecture = bert_counterpart(fields["architectures"][0])
    saved = as_stored(
        {name: one.numpy() for name, one in model_variables(model) if one.trainable and name not in layers},
        "huggingface",
    )
    if architecture == "BertForSequenceClassification":
        saved = {named_for_classifier(kind, name): value for name, value in saved.items()}
    tensors = {f"{_WRAPPER}{name}": value for name, value in saved.items()}
    modules = []
    for name, layer in layers.items():
        a, b = (np.ascontiguousarray(factor.numpy().T) for factor in (layer.lora_kernel_a, layer.lora_kernel_b))
        for stored in (name.huggingface.name, *name.huggingface.copies):
            modules.append(stored.removesuffix(".weight"))
            tensors |= {f"{_WRAPPER}{modules[-1]}{_A}": a, f"{_WRAPPER}{modules[-1]}{_B}": b}
    layer = next(iter(layers.values()))
    base_name, revision = _name_and_revision(base, base_path)
    config = {
        "peft_type": "LORA",
        "task_type": _TASK_TYPES.get(architecture),
        "base_model_name_or_path": base_name,
        "revision": revision,
        "r": layer.lora_rank,
        "lora_alpha": layer.lora_alpha,
        # The names without what comes before the block's number.
        "target_modules": sorted({re.split(r"\.\d+\.", module)[-1] for module in modules}),
        "modules_to_save": sorted({name.removeprefix(kind.stored_prefix).partition(".")[0] for name in saved}),
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
    }
    with whole_files.whole_folder(path, last=ADAPTER_CONFIG) as aside:
        config_file, weights_file = files.join(aside, ADAPTER_CONFIG), files.join(aside, ADAPTER_WEIGHTS)
        whole_files.write_json(config_file, config)
        whole_files.write_json(files.join(aside, CONFIG), fields)
        write_task_files(aside, model.config, fields)
        write_safetensors(weights_file, tensors, config_file)


def _name_and_revision(base: str, base_path: files.StrPath) -> tuple[str, str | None]:
    """What peft finds a model by: its name on the hub, or its folder."""
    if hub_name := HUB_NAME.fullmatch(base):
        return hub_name.group(1), hub_name.group(2)
    return (os.fspath(base_path) if files.is_remote(base_path) else os.path.abspath(base_path)), None
