"""Writing Hugging Face's folder: config.json, vocab.txt, tokenizer_config.json and model.safetensors."""

import dataclasses
import shutil
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import safetensors.numpy

from keras_bert import files
from keras_bert.checkpoints.huggingface import WEIGHTS
from keras_bert.checkpoints.model_card import ModelCard, write_card
from keras_bert.checkpoints.names import CLASSIFIER, MASKED_LM_HEAD, NEXT_SENTENCE_HEAD, PARTS, SPAN_HEAD, TensorName
from keras_bert.checkpoints.tokenizer_settings import (
    TOKENIZER_CONFIG,
    VOCABULARY,
    TokenizerSettings,
    tokenizer_config,
)
from keras_bert.config.bert import BertConfig
from keras_bert.config.classification import ClassificationConfig
from keras_bert.config.multiple_choice import MultipleChoiceConfig
from keras_bert.config.span_extraction import SpanExtractionConfig
from keras_bert.config.token_classification import TokenClassificationConfig
from keras_bert.text.vocabulary import Vocabulary

# Fields of a config that was read which describe only the file they came with.
_NOT_KEPT = (
    "architectures", "model_type", "transformers_version", "_name_or_path", "torch_dtype", "dtype",
    "tie_word_embeddings",
)  # fmt: skip

# All three call their head `classifier`; for the first two the config gives the number of labels.
_LABELLED = (ClassificationConfig.architecture, TokenClassificationConfig.architecture)
_CLASSIFIERS = (*_LABELLED, MultipleChoiceConfig.architecture)


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
    with files.whole_folder(path, last="config.json") as aside:
        config_file, weights_file = files.join(aside, "config.json"), files.join(aside, WEIGHTS)
        fields = _config(config, tensors, vocabulary, other_fields or {})
        files.write_json(config_file, fields)
        with files.written_locally(weights_file) as local:
            safetensors.numpy.save_file(stored, local, metadata={"format": "pt"})
        if not files.is_remote(path):
            shutil.copymode(config_file, weights_file)  # safetensors makes it readable for the owner only.
        files.write_json(
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
    architecture = _architecture(tensors, other_fields.get("architectures") or ())
    if architecture in _LABELLED and "id2label" not in kept:
        kept["num_labels"] = _num_labels(tensors)  # transformers would assume 2.
    return {
        "architectures": [architecture],
        "model_type": "bert",
        **dataclasses.asdict(config),
        "pad_token_id": vocabulary.pad_id,
        "position_embedding_type": "absolute",
        **kept,
    }


def _architecture(tensors: Mapping[TensorName, np.ndarray], named: Collection[str]) -> str:
    """The class of transformers that takes all of these tensors; among classifiers, the one `named`."""
    all_heads = (MASKED_LM_HEAD, NEXT_SENTENCE_HEAD, CLASSIFIER, SPAN_HEAD)
    heads = {part for part in all_heads if not tensors.keys().isdisjoint(PARTS[part])}
    if CLASSIFIER in heads:
        return next((name for name in named if name in _CLASSIFIERS), ClassificationConfig.architecture)
    if SPAN_HEAD in heads:
        return SpanExtractionConfig.architecture
    if NEXT_SENTENCE_HEAD in heads:
        return "BertForPreTraining" if MASKED_LM_HEAD in heads else "BertForNextSentencePrediction"
    return "BertForMaskedLM" if MASKED_LM_HEAD in heads else "BertModel"


def _num_labels(tensors: Mapping[TensorName, np.ndarray]) -> int:
    return next(value.shape[-1] for name, value in tensors.items() if name in PARTS[CLASSIFIER])
