"""Writing Hugging Face's folder: config.json, vocab.txt, tokenizer_config.json and model.safetensors."""

import shutil
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import safetensors.numpy

from keras_bert import files, whole_files
from keras_bert.checkpoints.huggingface import WEIGHTS
from keras_bert.checkpoints.model_card import ModelCard, write_card
from keras_bert.checkpoints.names import MASKED_LM_HEAD, NEXT_SENTENCE_HEAD, TensorName, parts
from keras_bert.checkpoints.tokenizer_settings import (
    TOKENIZER_CONFIG,
    VOCABULARY,
    TokenizerSettings,
    tokenizer_config,
)
from keras_bert.config.bert import BertConfig
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
    "tie_word_embeddings",
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
    stored = {
        name.huggingface.name: np.ascontiguousarray(value.T if name.huggingface.transposed else value)
        for name, value in tensors.items()
    }
    with whole_files.whole_folder(path, last="config.json") as aside:
        config_file, weights_file = files.join(aside, "config.json"), files.join(aside, WEIGHTS)
        fields = _config(config, tensors, vocabulary, other_fields or {})
        whole_files.write_json(config_file, fields)
        with files.written_locally(weights_file) as local:
            safetensors.numpy.save_file(stored, local, metadata={"format": "pt"})
        if not files.is_remote(path):
            shutil.copymode(config_file, weights_file)  # safetensors makes it readable for the owner only.
        whole_files.write_json(
            files.join(aside, TOKENIZER_CONFIG), tokenizer_config(tokenizer, config.max_position_embeddings)
        )
        vocabulary.to_file(files.join(aside, VOCABULARY))
        parameters = sum(value.size for value in tensors.values())
        write_card(aside, card or ModelCard(), config, fields, parameters, tokenizer.lower_case)


def _config(
    config: BertConfig,
    tensors: Mapping[TensorName, np.ndarray],
    vocabulary: Vocabulary,
    other_fields: Mapping[str, Any],
) -> dict[str, Any]:
    kept = {key: value for key, value in other_fields.items() if key not in _NOT_KEPT}
    kind = _kind(tensors, other_fields.get("architectures") or ())
    architecture = kind.head.architecture if kind else _without_task(tensors, config.is_causal)
    if own_architecture(other_fields):
        architecture = "BertModel"
    if kind and hasattr(kind.head, "num_labels") and "id2label" not in kept:
        kept["num_labels"] = _num_outputs(tensors, kind)  # transformers would assume 2.
    return {
        "architectures": [architecture],
        "model_type": "bert",
        **config.to_fields(),
        "pad_token_id": vocabulary.pad_id,
        "position_embedding_type": "absolute",
        **kept,
    }


def _kind(tensors: Mapping[TensorName, np.ndarray], named: Collection[str]) -> TaskKind | None:
    """The kind of task whose head is among the tensors, of those that transformers has a class for; or None.

    Several kinds have a part of the same name. The one that is `named` counts, else the first.
    """
    kinds = [
        kind for kind in task_kinds() if kind.in_transformers and not tensors.keys().isdisjoint(parts()[kind.part])
    ]
    return next((kind for kind in kinds if kind.head.architecture in named), kinds[0] if kinds else None)


def _without_task(tensors: Mapping[TensorName, np.ndarray], is_causal: bool) -> str:
    """The class of transformers that takes these tensors, which hold no task's head.

    A causal model's is `BertLMHeadModel`, which has no place for next sentence prediction; neither has such a model.
    """
    has_masked_lm, has_next_sentence = (
        not tensors.keys().isdisjoint(parts()[part]) for part in (MASKED_LM_HEAD, NEXT_SENTENCE_HEAD)
    )
    if is_causal and has_masked_lm:
        return "BertLMHeadModel"
    if has_next_sentence:
        return "BertForPreTraining" if has_masked_lm else "BertForNextSentencePrediction"
    return "BertForMaskedLM" if has_masked_lm else "BertModel"


def _num_outputs(tensors: Mapping[TensorName, np.ndarray], kind: TaskKind) -> int:
    return next(value.shape[-1] for name, value in tensors.items() if name in parts()[kind.part])
