"""A model folder of one kind written as the other, tensor by tensor, without a model in between."""

import dataclasses

from keras_bert import files
from keras_bert.checkpoints.google import is_google_folder, write_google_folder
from keras_bert.checkpoints.hub_name import hub_repository, shown_name
from keras_bert.checkpoints.huggingface_writing import write_huggingface_folder
from keras_bert.checkpoints.model_card import CARD, ModelCard

FORMATS = ("google", "huggingface")


def convert_folder(folder, to, path, vocabulary):
    """Writes what a folder holds to `path`, whole or not at all; no value changes.

    Args:
        folder: a `ModelFolder`.
        to: one of `FORMATS`.
        path: the new folder.
        vocabulary: the folder's, as a `text.Vocabulary`.

    Returns: the names of the tensors that the table does not know and that were left out.

    Raises:
        UserError: what is there cannot be read.
    """
    tensors = {name: value for part in folder.parts() for name, value in folder.read(part).items()}
    if to == "google":
        card = dataclasses.replace(_new_card(folder, path), in_transformers=False)
        write_google_folder(
            path, folder.config, tensors, vocabulary, folder.other_fields, card, folder.tokenizer.lower_case
        )
    else:
        write_huggingface_folder(
            path, folder.config, tensors, vocabulary, folder.tokenizer, folder.other_fields, _card(folder, path)
        )
    return folder.tensors.unused(tensors)


def _card(folder, path):
    """The model's own card where the folder has one, else one that says where it is from."""
    own = files.join(folder.path, CARD)
    if files.exists(own) and not is_google_folder(folder.path):  # Whose card says how to use that format.
        with files.open_file(own) as stream:
            return stream.read().decode("utf-8", "replace")
    return _new_card(folder, path)


def _new_card(folder, path):
    made = f"The weights of `{shown_name(folder.name)}`, converted without loss."
    return ModelCard(shown_name(path), made, base=hub_repository(folder.name))
