"""Google's folder: bert_config.json, vocab.txt and a TF1 checkpoint (bert_model.ckpt.*)."""

import contextlib
import dataclasses
import re
import weakref

from keras_bert import files
from keras_bert.checkpoints.model_card import write_card
from keras_bert.checkpoints.names import PARTS
from keras_bert.checkpoints.readable_prefix import readable_prefix
from keras_bert.checkpoints.stored_tensors import StoredTensors
from keras_bert.checkpoints.tokenizer_settings import VOCABULARY
from keras_bert.config.heads import TASK_HEADS
from keras_bert.config.reading import FIELD
from keras_bert.errors import UserError
from keras_bert.quiet import import_tensorflow
from keras_bert.stores import as_os_errors

CONFIG, CHECKPOINT = "bert_config.json", "bert_model.ckpt"

_OF_TRAINING = re.compile(r"^(global_step|beta[12]_power)$|/(adam_[mv]|lamb_[mv]|Adam(_1)?)$")
_KEPT_FIELDS = re.compile(rf"^(directionality|pooler_\w+|id2label|label2id|problem_type|{FIELD})$")
_LAYER = re.compile(r"^bert/encoder/layer_(\d+)/")


class GoogleTensors(StoredTensors):
    """The tensors of the folder's checkpoint, without global_step and the optimizer's slots."""

    column = "google"

    def __init__(self, folder):
        prefix = find_checkpoint(folder)
        self._places = contextlib.ExitStack()  # The reader opens the data when they are asked for.
        self._reader = _open(self._places.enter_context(readable_prefix(prefix)), prefix)
        weakref.finalize(self, self._places.close)
        self._shapes = {
            name: shape
            for name, shape in self._reader.get_variable_to_shape_map().items()
            if not _OF_TRAINING.search(name)
        }
        known = {row.google.name for rows in PARTS.values() for row in rows}
        places = {name: name for name in self._shapes if _LAYER.sub("bert/encoder/layer_{i}/", name) in known}
        super().__init__(prefix, places, [name for name in self._shapes if name not in places])

    def shape(self, name_in_file):
        return tuple(self._shapes[name_in_file])

    def kind(self, name_in_file):
        return self._reader.get_variable_to_dtype_map()[name_in_file].name

    def value(self, name_in_file):
        if not self._reader.get_variable_to_dtype_map()[name_in_file].is_floating:
            return None
        try:
            return self._reader.get_tensor(name_in_file)
        except Exception as error:  # What TensorFlow raises here is of several kinds.
            raise UserError(
                f"{self.path}: {name_in_file} cannot be read ({_first_line(error)}). Fetch or write it again."
            ) from None


def is_google_folder(folder):
    return files.is_file(files.join(folder, CONFIG))


def find_checkpoint(folder):
    """The prefix of the folder's checkpoint: bert_model.ckpt, the only one there is, or that of the last step.

    Raises:
        UserError: there is none, several have no step in their names, or the data is missing.
    """
    index, *_ = checkpoint_files(files.list_folder(folder), folder)
    return files.join(folder, index.removesuffix(".index"))


def checkpoint_files(names, folder):
    """The names of a checkpoint's index and data among the `names` in a folder; see `find_checkpoint`."""
    indexes = sorted(name.removesuffix(".index") for name in names if name.endswith(".index"))
    if not indexes:
        raise UserError(f"{folder}: needs {CHECKPOINT}.index and {CHECKPOINT}.data-00000-of-00001 and lacks them.")
    steps = {name: re.search(r"-(\d+)$", name) for name in indexes}
    if CHECKPOINT in indexes:
        chosen = CHECKPOINT
    elif len(indexes) == 1:
        chosen = indexes[0]
    elif all(steps.values()):
        chosen = max(indexes, key=lambda name: int(steps[name].group(1)))
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


def _open(prefix, shown):
    import_tensorflow()
    import tensorflow as tf

    try:
        return tf.compat.v1.train.NewCheckpointReader(prefix)
    except Exception as error:
        raise UserError(
            f"{shown}.index: is not a whole checkpoint ({_first_line(error)}). Fetch or write it again."
        ) from None


def write_google_folder(path, config, tensors, vocabulary, other_fields=None, card=None, lower_case=True):
    """Writes a folder as Google published them, whole or not at all: names, shapes and values are the original's.

    Args:
        path: the folder; replaced if there.
        config: a `BertConfig`.
        tensors: `{TensorName: array in our orientation}`.
        vocabulary: a `text.Vocabulary`.
        other_fields: of a config that was read; kept are those that Google's own files have, which kind of head a
            task put on it, with its labels' names, and what was said of the task.
        card: the `ModelCard` of README.md; None for none.
        lower_case: whether the tokenizer lower-cases, for the card: Google's format does not say.
    """
    import_tensorflow()
    import tensorflow as tf

    other_fields = other_fields or {}
    fields = {key: value for key, value in other_fields.items() if _KEPT_FIELDS.match(key)}
    heads = [name for name in other_fields.get("architectures") or () if name in TASK_HEADS]
    if heads:
        fields["architectures"] = heads
    stored = {name.google.name: value.T if name.google.transposed else value for name, value in tensors.items()}
    names = sorted(stored)
    with files.whole_folder(path, last=CONFIG) as aside:
        with tf.device("CPU:0"), as_os_errors(path):
            # A tf.train.Saver writes these plain names too, but only from a graph and its session.
            tf.raw_ops.SaveV2(
                prefix=files.join(aside, CHECKPOINT),
                tensor_names=names,
                shape_and_slices=[""] * len(names),
                tensors=[tf.constant(stored[name]) for name in names],
            )
        fields = {**dataclasses.asdict(config), **fields}
        files.write_json(files.join(aside, CONFIG), fields)
        if card:
            write_card(aside, card, config, fields, sum(value.size for value in tensors.values()), lower_case)
        vocabulary.to_file(files.join(aside, VOCABULARY))


def _first_line(error):
    return str(error).strip().partition("\n")[0]
