"""Converts a model folder to the other format, tensor by tensor, without building a model."""

import dataclasses

from keras_bert import files
from keras_bert.checkpoints.google import is_google_folder, write_google_folder
from keras_bert.checkpoints.hub_name import hub_repository, shown_name
from keras_bert.checkpoints.huggingface_writing import write_huggingface_folder
from keras_bert.checkpoints.model_card import CARD, ModelCard
from keras_bert.checkpoints.model_folder import ModelFolder
from keras_bert.text.vocabulary import Vocabulary

FORMATS = ("google", "huggingface")


def convert_folder(folder: ModelFolder, to: str, path: files.StrPath, vocabulary: Vocabulary) -> list[str]:
    """Writes the contents of a folder to `path`, whole or not at all; no value changes.

    Args:
        folder: the folder to convert.
        to: one of `FORMATS`.
        path: the new folder.
        vocabulary: the vocabulary of `folder`.

    Returns: the names of the tensors that were left out as no part of the model: unknown ones, and other tasks' heads.

    Raises:
        UserError: the folder cannot be read.
    """
    kind, fields = folder.task_kind, folder.other_fields
    if kind:  # It may be known by its tensors alone.
        fields = {"architectures": [kind.head.architecture], **fields}
    tensors = {name: value for part in folder.parts() for name, value in folder.read(part).items()}
    if to == "google":
        card = dataclasses.replace(_new_card(folder, path), in_transformers=False)
        write_google_folder(path, folder.config, tensors, vocabulary, fields, card, folder.tokenizer.lower_case)
    else:
        write_huggingface_folder(
            path, folder.config, tensors, vocabulary, folder.tokenizer, fields, _card(folder, path)
        )
    return folder.tensors.unused(tensors)


def _card(folder: ModelFolder, path: files.StrPath) -> str | ModelCard:
    """The model's own card if the folder has one, otherwise a card that names the source."""
    own = files.join(folder.path, CARD)
    if files.exists(own) and not is_google_folder(folder.path):  # That card explains Google's format.
        with files.open_file(own) as stream:
            return stream.read().decode("utf-8", "replace")
    return _new_card(folder, path)


def _new_card(folder: ModelFolder, path: files.StrPath) -> ModelCard:
    made = f"The weights of `{shown_name(folder.name)}`, converted without loss."
    return ModelCard(shown_name(path), made, base=hub_repository(folder.name))
