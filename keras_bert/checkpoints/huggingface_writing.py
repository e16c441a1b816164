"""Writing Hugging Face's folder: config.json, vocab.txt, tokenizer_config.json and model.safetensors."""

import shutil
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import safetensors.numpy

from keras_bert import files, whole_files
from keras_bert.checkpoints.huggingface import WEIGHTS
from keras_bert.checkpoints.model_card import ModelCard, write_card
from keras_bert.checkpoints.names import NEXT_SENTENCE_HEAD, TensorName, parts
from keras_bert.checkpoints.tokenizer_settings import (
    TOKENIZER_CONFIG,
    TokenizerSettings,
    tokenizer_config,
)
from keras_bert.config.bert import BertConfig
from keras_bert.model_kinds import berts_name, kind_of_config
from keras_bert.task_kinds import TaskKind, own_architecture, task_kinds
from keras_bert.text.vocabulary import Vocabulary

# Fields of a config that was read which describe only the file they came with.
_NOT_KEPT = (
    "architectures",
    "model_type",
    "transformers_version",
    "_name_or_path",
    "torch_dtype",
    "dtype",
)


def write_huggingface_folder(
    path: files.StrPath,
    config: BertConfig,
    tensors: Mapping[TensorName, np.ndarray],
    vocabulary: Vocabulary,
    tokenizer: TokenizerSettings,
    other_fields: Mapping[str, Any] | None = None,
    card: ModelCard | str | None = None,
) -> None:
    """Writes a folder that `transformers` opens, whole or not at all.

    Args:
        path: the folder; replaced if it exists.
        config: the architecture.
        tensors: the weights in our orientation.
        vocabulary: the vocabulary.
        tokenizer: the settings of its tokenizer.
        other_fields: more fields for config.json; `architectures` only tells which kind of classifier it is.
        card: what README.md says, or its full text.
    """
    # safetensors writes the memory of a buffer regardless of strides, so a transpose must be a copy.
    stored = {}
    for name, value in tensors.items():
        array = np.ascontiguousarray(value.T if name.huggingface.transposed else value)
        stored.update(dict.fromkeys((name.huggingface.name, *name.huggingface.copies), array))
    with whole_files.whole_folder(path, last="config.json") as aside:
        config_file, weights_file = files.join(aside, "config.json"), files.join(aside, WEIGHTS)
        fields = _config(config, tensors, vocabulary, other_fields or {})
        whole_files.write_json(config_file, fields)
        with files.written_locally(weights_file) as local:
            safetensors.numpy.save_file(stored, local, metadata={"format": "pt"})
        if not files.is_remote(path):
            shutil.copymode(config_file, weights_file)  # safetensors makes it readable for the owner only.
        whole_files.write_json(
            files.join(aside, TOKENIZER_CONFIG), tokenizer_config(tokenizer, config.max_position_embeddings, vocabulary)
        )
        vocabulary.to_file(files.join(aside, vocabulary.file_name))
        parameters = sum(value.size for value in tensors.values())
        write_card(aside, card or ModelCard(), config, fields, parameters, tokenizer.lower_case)


def _config(
    config: BertConfig,
    tensors: Mapping[TensorName, np.ndarray],
    vocabulary: Vocabulary,
    other_fields: Mapping[str, Any],
) -> dict[str, Any]:
    kept = {key: value for key, value in other_fields.items() if key not in _NOT_KEPT}
    model_kind = kind_of_config(config)
    present = {part: names for part, names in parts(config).items() if not tensors.keys().isdisjoint(names)}
    kind = _kind(present, list(map(berts_name, other_fields.get("architectures") or ())))
    architecture = kind.head.architecture if kind else model_kind.class_in_transformers(present, config)
    if own_architecture(other_fields):
        architecture = "BertModel"
    if kind and hasattr(kind.head, "num_labels") and "id2label" not in kept:
        kept["num_labels"] = _num_outputs(tensors, present[kind.part])  # transformers would assume 2.
    return {
        "architectures": [model_kind.class_name(architecture)],
        "model_type": model_kind.model_type,
        **config.to_fields(),
        "pad_token_id": vocabulary.pad_id,
        "position_embedding_type": "absolute",
        **kept,
    }


def _kind(present: Collection[str], named: Collection[str]) -> TaskKind | None:
    """The kind of task whose head is among the parts, of those that transformers has a class for; or None.

    Several kinds have a part of the same name, and next sentence prediction has one that models for pretraining have
    too. The kind that is `named` counts, else the first of the others.
    """
    kinds = [kind for kind in task_kinds() if kind.in_transformers and kind.part in present]
    others = (kind for kind in kinds if kind.part != NEXT_SENTENCE_HEAD)
    return next((kind for kind in kinds if kind.head.architecture in named), next(others, None))


def _num_outputs(tensors: Mapping[TensorName, np.ndarray], head: Collection[TensorName]) -> int:
    return next(value.shape[-1] for name, value in tensors.items() if name in head)
