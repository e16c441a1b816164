"""Writes a model folder, or replaces its model card."""

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert.checkpoints import sentence_transformers
from keras_bert.checkpoints.generation import stored_generation
from keras_bert.checkpoints.google import is_google_folder, write_google_folder
from keras_bert.checkpoints.hub import hub_repository, shown_name
from keras_bert.checkpoints.huggingface import CONFIG, WEIGHTS, named_for_classifier, write_safetensors
from keras_bert.checkpoints.model_card import CARD, ModelCard, write_card
from keras_bert.checkpoints.model_folder import ModelFolder, open_model_folder
from keras_bert.checkpoints.stored_tensors import as_stored
from keras_bert.checkpoints.task_files import write_task_files
from keras_bert.config.reading import FIELD
from keras_bert.core import files, whole_files
from keras_bert.core.settings import checked, require
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import bert_counterpart, kind_of_config, with_article
from keras_bert.models.tensor_names import TensorName, model_values, parts, pretraining_parts
from keras_bert.tasks.head import Head
from keras_bert.tasks.kind import TaskKind, kind_of_head, own_architecture, task_kinds
from keras_bert.text.standalone_tokenizer import MAX_CHARACTERS_PER_WORD
from keras_bert.text.tokenizer_files import TOKENIZER_CONFIG, TokenizerSettings, without_segments
from keras_bert.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    import keras

# Fields of a config that describe only the file they were read from.
_NOT_KEPT = ("architectures", "model_type", "transformers_version", "_name_or_path", "torch_dtype", "dtype")


@checked
def write_huggingface_folder(
    path: files.StrPath,
    config: BertConfig,
    tensors: Mapping[TensorName, np.ndarray],
    vocabulary: Vocabulary,
    tokenizer: TokenizerSettings,
    other_fields: Mapping[str, Any] | None = None,
    card: ModelCard | str | None = None,
    more_files: Mapping[str, Any] | None = None,
) -> None:
    """Writes a folder that `transformers` opens, whole or not at all.

    Args:
        path: replaced if it exists.
        tensors: the weights in our orientation.
        other_fields: more fields for config.json; `architectures` only says which kind of classifier it is.
        card: what README.md says, or its full text.
        more_files: more JSON files, `{path in the folder: content}`, beside those of the model's kind of task.
    """
    stored = as_stored(tensors, "huggingface")
    with whole_files.whole_folder(path, last=CONFIG) as aside:
        config_file, weights_file = files.join(aside, CONFIG), files.join(aside, WEIGHTS)
        fields = _config(config, tensors, vocabulary, other_fields or {})
        kind = kind_of_config(config)
        if bert_counterpart(fields["architectures"][0]) in kind.classifier_classes:
            stored = {named_for_classifier(kind, name): value for name, value in stored.items()}
        whole_files.write_json(config_file, fields)
        write_safetensors(weights_file, stored, config_file)
        of_tokenizer = vocabulary.tokenizer_config(tokenizer, config.max_position_embeddings)
        if config.type_vocab_size == 1:
            of_tokenizer = without_segments(of_tokenizer)
        whole_files.write_json(files.join(aside, TOKENIZER_CONFIG), of_tokenizer)
        vocabulary.to_file(files.join(aside, vocabulary.file_name))
        write_task_files(aside, config, fields, more_files)
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
    kind = _kind(present, config, list(map(bert_counterpart, other_fields.get("architectures") or ())))
    architecture = kind.head.architecture if kind else model_kind.class_in_transformers(present, config)
    if own_architecture(other_fields):
        architecture = model_kind.encoder_class
    if kind and not kind.head.outputs and "id2label" not in kept:
        # transformers would assume 2.
        kept["num_labels"] = next(value.shape[-1] for name, value in tensors.items() if name in present[kind.part])
    return {
        "architectures": [model_kind.class_name(architecture)],
        "model_type": model_kind.model_type,
        "pad_token_id": vocabulary.pad_id,
        **config.to_fields(),  # After it: a RoBERTa counts positions from the padding of its own config.
        **({"eos_token_id": vocabulary.sep_id} if model_kind.decodes else {}),
        **({"position_embedding_type": "absolute"} if model_kind.has_positions else {}),
        **kept,
    }


def _kind(present: Collection[str], config: BertConfig, named: Collection[str]) -> TaskKind | None:
    """The kind of task whose head is among the parts, of the kinds that transformers has a class for; or None.

    Several kinds share the name of their part, and one has a part that models for pretraining have too. The kind that
    is `named` counts, else the first whose part is not one of pretraining.
    """
    kinds = [kind for kind in task_kinds() if kind.in_transformers and kind.part in present]
    of_pretraining = pretraining_parts(config)
    others = (kind for kind in kinds if kind.part not in of_pretraining)
    return next((kind for kind in kinds if kind.head.architecture in named), next(others, None))


def write_model_folder(
    path: files.StrPath,
    model: "keras.Model",
    vocabulary: Vocabulary,
    lower_case: bool,
    strip_accents: bool | None = None,
    split_chinese: bool = True,
    quotes: bool = True,
    max_characters_per_word: int = MAX_CHARACTERS_PER_WORD,
    prefix_space: bool = False,
    head: Head | None = None,
    task: Mapping[str, Any] | None = None,
    card: ModelCard | None = None,
) -> None:
    """Writes a model to `path`, whole or not at all, in Hugging Face's format.

    Args:
        path: replaced if it exists.
        model: a model with an `encoder`, such as `BertForPreTraining`; its weights are written in float32, LoRA's
            additions added and int8 dequantized.
        lower_case, strip_accents, split_chinese, quotes, max_characters_per_word, prefix_space: whether texts are
            lower-cased; whether accents are removed (None: only if lower-cased); whether every ideograph is a word;
            whether SentencePiece makes two apostrophes or backquotes a double quote; the most characters of a word,
            beyond which it is [UNK]; whether byte-level BPE reads a text as if a space came before it.
        head: the config of the model's head, if a task put one on it.
        task: the description of the task that the model was fine-tuned on; see `ModelFolder.task`.
        card: what its README.md says.

    Example:
        bert = keras_bert.load("runs/demo")
        keras_bert.write_model_folder("runs/copy", bert.model, bert.tokenizer.vocabulary, lower_case=True)
        keras_bert.load("runs/copy")
    """
    architecture = type(model).__name__
    require(hasattr(model, "config"), "model", "a model with an encoder, such as a BertForPreTraining", architecture)
    if head and head.architecture != architecture:
        raise ValueError(
            f"head: needs the config of {with_article(architecture)}. "
            f"Received: that of {with_article(head.architecture)}."
        )
    if head and not head.outputs and head.num_outputs != model.num_labels:
        raise ValueError(f"head: needs {model.num_labels} labels, as the model has. Received: {head.num_outputs}.")
    tensors = model_values(model)
    tokenizer = TokenizerSettings(
        lower_case, strip_accents, split_chinese, quotes, max_characters_per_word, prefix_space
    )
    fields: dict[str, Any] = head.to_fields() if head else {"architectures": [architecture]}
    if task:
        fields[FIELD] = {**fields.get(FIELD, {}), **task}
    if head and not _is_in_transformers(head, model.config):
        fields["architectures"] = [kind_of_config(model.config).encoder_class]
        fields[FIELD] = {**fields.get(FIELD, {}), "architecture": head.architecture}
    write_huggingface_folder(path, model.config, tensors, vocabulary, tokenizer, fields, card)


def _is_in_transformers(head: Head, config: BertConfig) -> bool:
    """Whether transformers has a class that computes what a model with this head does."""
    kind = kind_of_head(head)
    if kind_of_config(config).decodes and not kind.writes_texts:  # Its classes read what the decoder makes of the text.
        return False
    return kind.in_transformers and not (kind.pools and config.pools_last) and not head.bilstm_size


def describe_folder(path: files.StrPath, card: ModelCard) -> None:
    """Replaces the model card of a model folder."""
    folder = open_model_folder(path)
    fields = {**folder.other_fields, **folder.config.to_fields()}
    parameters = sum(map(math.prod, folder.tensor_shapes().values()))
    write_card(path, card, folder.config, fields, parameters, folder.lower_case)


FORMATS = ("google", "huggingface")


def convert_folder(folder: ModelFolder, to: str, path: files.StrPath, vocabulary: Vocabulary) -> list[str]:
    """Writes the contents of a folder to `path`, whole or not at all; no value changes.

    Args:
        to: one of `FORMATS`.

    Returns: the names of what was left out: tensors that are no part of the model (unknown ones, other tasks' heads),
    and sentence-transformers' modules.json if Google's format lacks it or its modules have weights.

    Raises:
        UserError: the folder cannot be read.
    """
    kind, fields = folder.task_kind, folder.other_fields
    if kind and not fields.get("architectures"):  # It is known by its tensors alone.
        fields = {**fields, "architectures": [kind.head.architecture]}
    tensors = {name: value for part in folder.parts() for name, value in folder.read(part).items()}
    left_out = folder.tensors.unused(tensors)
    more_files = sentence_transformers.stored_files(folder.path, folder.config.max_position_embeddings)
    if more_files is None or more_files and to == "google":
        left_out = [*left_out, sentence_transformers.MODULES]
    if to == "google":
        card = dataclasses.replace(_new_card(folder, path), in_transformers=False)
        write_google_folder(path, folder.config, tensors, vocabulary, fields, card, folder.tokenizer.lower_case)
    else:
        text, base = _card(folder, path), folder.base or folder
        generation = stored_generation(folder.path) or stored_generation(base.path)
        more_files = {**(generation if folder.model_kind.decodes else {}), **(more_files or {})}
        write_huggingface_folder(path, folder.config, tensors, vocabulary, folder.tokenizer, fields, text, more_files)
    return left_out


def _card(folder: ModelFolder, path: files.StrPath) -> str | ModelCard:
    """The model's own card if the folder has one, otherwise a card that names the source."""
    own = files.join(folder.path, CARD)
    # Google's card explains that format, and an adapter's tells the hub to open the folder with peft.
    if files.exists(own) and not is_google_folder(folder.path) and not folder.base:
        return files.content(own).decode("utf-8", "replace")
    return _new_card(folder, path)


def _new_card(folder: ModelFolder, path: files.StrPath) -> ModelCard:
    made = f"The weights of `{shown_name(folder.name)}`, converted without loss."
    return ModelCard(shown_name(path), made, base=hub_repository(folder.name))
