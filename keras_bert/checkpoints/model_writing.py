"""Writes a model folder, or replaces its model card."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from keras_bert import files
from keras_bert.checkpoints.huggingface_writing import write_huggingface_folder
from keras_bert.checkpoints.model_card import ModelCard, write_card
from keras_bert.checkpoints.names import (
    model_variables,
)
from keras_bert.checkpoints.tokenizer_settings import (
    TokenizerSettings,
)
from keras_bert.config.bert import BertConfig
from keras_bert.config.reading import FIELD
from keras_bert.task_kinds import kind_of_head
from keras_bert.text.standalone_tokenizer import MAX_CHARACTERS_PER_WORD
from keras_bert.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    import keras

from keras_bert.checkpoints.model_folder import TaskHead, open_model_folder


def write_model_folder(
    path: files.StrPath,
    model: "keras.Model",
    vocabulary: Vocabulary,
    lower_case: bool,
    strip_accents: bool | None = None,
    split_chinese: bool = True,
    quotes: bool = True,
    max_characters_per_word: int = MAX_CHARACTERS_PER_WORD,
    head: TaskHead | None = None,
    task: Mapping[str, Any] | None = None,
    card: ModelCard | None = None,
) -> None:
    """Writes a model to `path`, whole or not at all, in Hugging Face's format.

    Args:
        path: the folder; replaced if it exists.
        model: a model with an `encoder`, such as `BertForPreTraining`; its weights are written in float32.
        vocabulary: the vocabulary.
        lower_case, strip_accents, split_chinese, quotes, max_characters_per_word: the settings of its tokenizer, as for
            `make_tokenizer`.
        head: the config of the model's head, if a task put one on it.
        task: the description of the task that the model was fine-tuned on; see `ModelFolder.task`.
        card: what its README.md says.
    """
    kind = type(model).__name__
    if head and head.architecture != kind:
        raise ValueError(f"head: needs the config of a {kind}. Received: that of a {head.architecture}.")
    if head and hasattr(head, "num_labels") and head.num_labels != model.num_labels:
        raise ValueError(f"head: needs {model.num_labels} labels, as the model has. Received: {head.num_labels}.")
    tensors = {name: variable.numpy() for name, variable in model_variables(model)}
    tokenizer = TokenizerSettings(lower_case, strip_accents, split_chinese, quotes, max_characters_per_word)
    fields: dict[str, Any] = head.to_fields() if head else {"architectures": [kind]}
    if task:
        fields[FIELD] = {**fields.get(FIELD, {}), **task}
    if head and not _is_transformers_own(head, fields, model.config):
        fields["architectures"] = ["BertModel"]
        fields[FIELD] = {**fields.get(FIELD, {}), "architecture": head.architecture}
    write_huggingface_folder(path, model.config, tensors, vocabulary, tokenizer, fields, card)


def _is_transformers_own(head: TaskHead, fields: Mapping[str, Any], config: BertConfig) -> bool:
    """Whether the fields suffice for transformers to compute what the model does."""
    kind = kind_of_head(head)
    return kind.is_of(fields) and not (kind.pools and config.pools_last) and not getattr(head, "bilstm_size", None)


def describe_folder(path: files.StrPath, card: ModelCard) -> None:
    """Replaces the model card of a model folder."""
    folder = open_model_folder(path)
    fields = {**folder.other_fields, **folder.config.to_fields()}
    parameters = sum(map(math.prod, folder.tensor_shapes().values()))
    write_card(path, card, folder.config, fields, parameters, folder.lower_case)
