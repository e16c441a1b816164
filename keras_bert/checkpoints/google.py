"""Google's folder: for BERT, bert_config.json, vocab.txt and a TF1 checkpoint (bert_model.ckpt.*)."""

import contextlib
import os
import re
import tempfile
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert.checkpoints.model_card import ModelCard, write_card
from keras_bert.checkpoints.stored_tensors import StoredTensors, as_stored
from keras_bert.config.reading import FIELD
from keras_bert.core import files, whole_files
from keras_bert.core.errors import UserError
from keras_bert.core.runtime import import_tensorflow
from keras_bert.core.stores import as_os_errors
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import bert_counterpart, google_configs, kind_of_config, model_kinds, with_article
from keras_bert.models.tensor_names import TensorName
from keras_bert.tasks.kind import task_kinds
from keras_bert.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    import tensorflow as tf

_GLOB_CHARACTERS = re.compile(r"[*?\[\\]")


@contextlib.contextmanager
def readable_prefix(prefix: str) -> Iterator[str]:
    """A name under which TensorFlow finds the checkpoint `prefix` inside the block.

    TensorFlow writes to a folder called `run [1]`, but its readers find nothing there. Without glob characters the name
    is `prefix` itself; otherwise it goes through a symbolic link or, for a remote path, a copy.
    """
    if not _GLOB_CHARACTERS.search(prefix):
        yield prefix
        return
    folder, name = files.parent(prefix), prefix[len(files.join(files.parent(prefix), "")) :]
    with tempfile.TemporaryDirectory() as scratch:
        place = os.path.join(scratch, "checkpoint")
        if files.is_remote(folder):
            files.copy_folder(folder, place)
        else:
            os.symlink(os.path.abspath(folder), place, target_is_directory=True)
        yield os.path.join(place, name)


_OF_TRAINING = re.compile(r"^(global_step|beta[12]_power)$|/(adam_[mv]|lamb_[mv]|Adam(_1)?)$")
_ACTIVATIONS = ("gelu", "relu", "tanh", "linear")
_KEPT_FIELDS = re.compile(
    rf"^(directionality|pooler_\w+|id2label|label2id|problem_type|sentence_transformers|{FIELD})$"
)


class GoogleTensors(StoredTensors):
    """The tensors of the folder's checkpoint, without global_step and optimizer slots."""

    column = "google"

    def __init__(self, folder: str, names: Iterable[TensorName]) -> None:
        prefix = find_checkpoint(folder)
        self._places = contextlib.ExitStack()  # The reader opens the data files lazily.
        self._reader = _open(self._places.enter_context(readable_prefix(prefix)), prefix)
        weakref.finalize(self, self._places.close)
        self._shapes = {
            name: shape
            for name, shape in self._reader.get_variable_to_shape_map().items()
            if not _OF_TRAINING.search(name)
        }
        known = {name for item in names for name in (item.google.name, *item.google.copies)}
        places = {name: name for name in self._shapes if name in known}
        super().__init__(prefix, places, [name for name in self._shapes if name not in places])

    def shape(self, name_in_file: str) -> tuple[int, ...]:
        return tuple(self._shapes[name_in_file])

    def kind(self, name_in_file: str) -> str:
        return self._reader.get_variable_to_dtype_map()[name_in_file].name

    def value(self, name_in_file: str) -> np.ndarray | None:
        if not self._reader.get_variable_to_dtype_map()[name_in_file].is_floating:
            return None
        try:
            return self._reader.get_tensor(name_in_file)
        except Exception as error:  # TensorFlow raises several kinds of errors here.
            raise UserError(
                f"{self.path}: {name_in_file} cannot be read ({_first_line(error)}). Fetch or write it again."
            ) from None


def is_google_folder(folder: files.StrPath) -> bool:
    return config_file(folder) is not None


def config_file(folder: files.StrPath) -> str | None:
    """The config in a Google folder, whose name depends on the kind of model; None if there is none."""
    paths = [files.join(folder, name) for name in google_configs()]
    return next(filter(files.is_file, paths), None)


def vocabulary_file(folder: str, names: Collection[str]) -> str:
    """The path of vocab.txt or of the SentencePiece model (30k-clean.model) among the files of a folder.

    Raises `UserError` if there is none, or several models.
    """
    models = [name for name in names if name.endswith(".model")]
    found = Vocabulary.file_name if Vocabulary.file_name in names else models[0] if len(models) == 1 else None
    if found is None:
        held = f"holds {', '.join(sorted(models))}" if models else "lacks both"
        raise UserError(f"{folder}: needs {Vocabulary.file_name} or one SentencePiece model (.model) and {held}.")
    return files.join(folder, found)


def find_checkpoint(folder: str) -> str:
    """The prefix of the folder's checkpoint: the one with Google's name, else the only one, else the highest step's.

    Raises:
        UserError: there is none, there are several and not all names carry a step, or a data file is missing.
    """
    index, *_ = checkpoint_files(files.list_folder(folder), folder)
    return files.join(folder, index.removesuffix(".index"))


def checkpoint_files(names: Collection[str], folder: str) -> list[str]:
    """The names, among `names`, of a checkpoint's index and data files; see `find_checkpoint`.

    `folder` is where they are, for messages.
    """
    indexes = sorted(name.removesuffix(".index") for name in names if name.endswith(".index"))
    published = [kind.google_files.checkpoint for kind in model_kinds() if kind.google_files]
    if not indexes:
        name = published[0]
        raise UserError(f"{folder}: needs {name}.index and {name}.data-00000-of-00001 and lacks them.")
    matches = {name: re.search(r"-(\d+)$", name) for name in indexes}
    steps = {name: int(match.group(1)) for name, match in matches.items() if match}
    if own := [name for name in published if name in indexes]:
        chosen = own[0]
    elif len(indexes) == 1:
        chosen = indexes[0]
    elif len(steps) == len(indexes):
        chosen = max(indexes, key=steps.__getitem__)
    else:
        raise UserError(f"{folder}: needs one checkpoint. Received: {', '.join(indexes)}. Leave one in the folder.")
    data = re.compile(re.escape(chosen) + r"\.data-(\d{5})-of-(\d{5})$")
    found = [match for match in map(data.match, names) if match]
    wanted = int(found[0].group(2)) if found else 1
    parts = [f"{chosen}.data-{number:05d}-of-{wanted:05d}" for number in range(wanted)]
    for name in parts:
        if name not in names:
            raise UserError(f"{files.join(folder, name)}: is missing, and {chosen}.index needs it. Fetch it too.")
    return [f"{chosen}.index", *parts]


def _open(prefix: str, shown: str) -> "tf.train.CheckpointReader":
    import_tensorflow()
    import tensorflow as tf  # Takes seconds.

    try:
        return tf.compat.v1.train.NewCheckpointReader(prefix)
    except Exception as error:
        raise UserError(
            f"{shown}.index: is not a complete checkpoint ({_first_line(error)}). Fetch or write it again."
        ) from None


def write_google_folder(
    path: files.StrPath,
    config: BertConfig,
    tensors: Mapping[TensorName, np.ndarray],
    vocabulary: Vocabulary,
    other_fields: Mapping[str, Any] | None = None,
    card: ModelCard | None = None,
    lower_case: bool = True,
) -> None:
    """Writes a folder in the format that Google published, with its names and shapes, whole or not at all.

    Args:
        path: replaced if it exists.
        tensors: the weights in our orientation.
        other_fields: the other fields of the config that was read; those that Google's files have, the kind of head
            with the names of its labels, and the description of the task are kept.
        card: what README.md says; None writes no README.md.
        lower_case: for the card only: Google's format does not record it.

    Raises:
        UserError: the model is causal, has an untied decoder, or an activation or epsilon of LayerNorm that Google's
            code lacks, or is of a kind that Google has no format for.
    """
    if config.is_causal:
        raise UserError(
            f"{path}: needs a bidirectional model; Google's code has no causal attention. Received: causal."
        )
    if not config.tie_word_embeddings:
        raise UserError(
            f"{path}: needs a decoder that is tied to the word embeddings, as in Google's code. Received: "
            "tie_word_embeddings false. Use --to huggingface."
        )
    kind = kind_of_config(config)
    if kind.google_files is None:
        raise UserError(f"{path}: Google has no format for {with_article(kind.title)}. Use --to huggingface.")
    architecture = kind.to_google_fields(config)
    if architecture["hidden_act"] not in _ACTIVATIONS:
        raise UserError(
            f"{path}: needs one of Google's hidden_act, {', '.join(_ACTIVATIONS)}. "
            f"Received: {architecture['hidden_act']}. Use --to huggingface."
        )
    if config.layer_norm_eps != BertConfig.layer_norm_eps:
        raise UserError(
            f"{path}: needs layer_norm_eps {BertConfig.layer_norm_eps}, as in Google's code, which reads none. "
            f"Received: {config.layer_norm_eps}. Use --to huggingface."
        )
    import_tensorflow()
    import tensorflow as tf

    other_fields = other_fields or {}
    fields = {key: value for key, value in other_fields.items() if _KEPT_FIELDS.match(key)}
    known = {kind.head.architecture for kind in task_kinds()}
    if heads := [name for name in other_fields.get("architectures") or () if bert_counterpart(name) in known]:
        fields["architectures"] = heads
    stored = as_stored(tensors, "google")
    names = sorted(stored)
    with whole_files.whole_folder(path, last=kind.google_files.config) as aside:
        with tf.device("CPU:0"), as_os_errors(path):
            # tf.train.Saver writes these plain names too, but only from a graph in a session.
            tf.raw_ops.SaveV2(
                prefix=files.join(aside, kind.google_files.checkpoint),
                tensor_names=names,
                shape_and_slices=[""] * len(names),
                tensors=[tf.constant(stored[name]) for name in names],
            )
        fields = {**architecture, **fields}
        whole_files.write_json(files.join(aside, kind.google_files.config), fields)
        if card:
            write_card(aside, card, config, fields, sum(value.size for value in tensors.values()), lower_case)
        vocabulary.to_file(files.join(aside, vocabulary.file_name))


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
