"""Hugging Face's weights: model.safetensors or pytorch_model.bin, or shards of either with an index."""

import os

from keras_bert import settings
from keras_bert.checkpoints.names import PARTS
from keras_bert.checkpoints.safetensors_file import SafetensorsFile
from keras_bert.checkpoints.stored_tensors import StoredTensors
from keras_bert.checkpoints.torch_file import TorchFile
from keras_bert.errors import UserError
from keras_bert.files import is_file, join

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"

# In the order in which they are looked for: a folder that holds several holds the same weights in each.
WEIGHT_FILES = (WEIGHTS, INDEX, "pytorch_model.bin", "pytorch_model.bin.index.json")

_ANCHOR = "embeddings.word_embeddings.weight"
_BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
_OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


class HuggingFaceTensors(StoredTensors):
    """The tensors of a Hugging Face folder.

    Names are known with and without the `bert.` of the models that have heads, with a wrapper's name before them
    (`module.bert.…`), and in the form before 2019 (`LayerNorm.gamma`). Buffers such as `position_ids` are passed over.
    """

    column = "huggingface"

    def __init__(self, folder):
        self._files = {}
        for path, names in _files_of(folder).items():
            file = SafetensorsFile(path) if path.endswith(".safetensors") else TorchFile(path)
            for name in names or file.names:
                if name not in file.names:
                    raise UserError(f"{path}: needs the tensor {name}, as the index beside it says, and lacks it.")
                self._files[name] = (path, file)
        paths = {path for path, _ in self._files.values()}
        path = paths.pop() if len(paths) == 1 else folder
        super().__init__(path, *_places(self._files, path))

    def shape(self, name_in_file):
        return self._files[name_in_file][1].shape(name_in_file)

    def kind(self, name_in_file):
        return self._files[name_in_file][1].kind(name_in_file)

    def value(self, name_in_file):
        return self._files[name_in_file][1].value(name_in_file)

    def file_of(self, name_in_file):
        return self._files[name_in_file][0]


def has_weights(folder):
    return _weights(folder) is not None


def has_all_weights(folder):
    """Whether the weights are there and, where there are several files of them, each one."""
    return has_weights(folder) and all(map(is_file, _files_of(folder)))


def require_weights(folder):
    """Raises `UserError` unless the folder holds weights that can be read."""
    if not has_weights(folder):
        raise UserError(f"{folder}: needs {WEIGHTS} (or pytorch_model.bin) and lacks it.")


def shards(index):
    """`{file's name: the names of its tensors}` of an index's file. Raises `UserError`."""
    weight_map = settings.read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise UserError(f"{index}: needs weight_map, the file of each tensor, and lacks it. Fetch it again.")
    named = {}
    for name, file in weight_map.items():
        if not isinstance(file, str) or os.path.basename(file) != file:
            raise UserError(f"{index}: needs the name of a file beside it for {name}. Received: {file!r}.")
        named.setdefault(file, []).append(name)
    return named


def _weights(folder):
    """The file of the folder's weights, or of their index; None where there is none."""
    paths = [join(folder, name) for name in WEIGHT_FILES]
    return next((path for path in paths if is_file(path)), None)


def _files_of(folder):
    """`{file: the names to be found there}`, None for all names."""
    found = _weights(folder)
    if not found.endswith(".json"):
        return {found: None}
    return {join(folder, file): names for file, names in shards(found).items()}


def _places(names, path):
    """`({name in the table: name in the file}, names that the table does not know)`."""
    prefix = _prefix(names, path)
    heads_prefix = prefix.removesuffix("bert.")
    known = _head_names()
    places, others = {}, []
    for name in names:
        rest = name.removeprefix(prefix)
        for old, new in _OLD_NAMES.items():
            rest = rest.replace(old, new)
        head = rest.removeprefix(heads_prefix)
        if rest in _BUFFERS:
            continue
        if head in known:
            places[head] = name
        elif name.startswith(prefix) and rest.startswith(("embeddings.", "encoder.layer.", "pooler.")):
            places[f"bert.{rest}"] = name
        else:
            others.append(name)
    return places, others


def _prefix(names, path):
    """What stands before the encoder's names in this file: nothing, `bert.`, or a wrapper's name as well."""
    anchors = [name for name in names if name == _ANCHOR or name.endswith(f".{_ANCHOR}")]
    if not anchors:
        raise UserError(f"{path}: needs the tensor bert.{_ANCHOR} and lacks it. Is it another kind of model?")
    if len(anchors) > 1:
        raise UserError(f"{path}: needs one BERT. Received: several ({', '.join(sorted(anchors))}).")
    return anchors[0].removesuffix(_ANCHOR)


def _head_names():
    stored = [row.huggingface for rows in PARTS.values() for row in rows]
    return {name for item in stored for name in (item.name, *item.also) if not name.startswith("bert.")}
