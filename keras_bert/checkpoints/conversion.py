"""A model folder of one kind written as the other, tensor by tensor, without a model in between."""

from keras_bert.checkpoints.google import write_google_folder
from keras_bert.checkpoints.huggingface_writing import write_huggingface_folder

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
        write_google_folder(path, folder.config, tensors, vocabulary, folder.other_fields)
    else:
        write_huggingface_folder(path, folder.config, tensors, vocabulary, folder.tokenizer, folder.other_fields)
    return folder.tensors.unused(tensors)
