"""Hugging Face's weights: model.safetensors, or shards of it with an index."""

import os

from keras_bert import settings
from keras_bert.checkpoints.names import PARTS
from keras_bert.checkpoints.safetensors_file import SafetensorsFile
from keras_bert.checkpoints.stored_tensors import StoredTensors
from keras_bert.errors import UserError

WEIGHTS, INDEX, PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"

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
            file = SafetensorsFile(path)
            for name in names or file.names:
                if name not in file.names:
                    raise UserError(f"{path}: needs the tensor {name}, as {INDEX} says, and lacks it.")
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
    return any(os.path.isfile(os.path.join(folder, name)) for name in (WEIGHTS, INDEX))


def require_weights(folder):
    """Raises `UserError` unless the folder holds weights that can be read."""
    if has_weights(folder):
        return
    pickled = os.path.join(folder, PICKLED)
    if os.path.isfile(pickled):
        raise UserError(
            f"{pickled}: is a pickle, which is not opened because it can run any code. If you trust it, write "
            f"{WEIGHTS} beside it: {conversion_command(folder)}"
        )
    raise UserError(f"{folder}: needs {WEIGHTS} and lacks it.")


def conversion_command(folder):
    """The command that writes model.safetensors from pytorch_model.bin; PyTorch's reader for weights alone."""
    source, target = os.path.join(folder, PICKLED), os.path.join(folder, WEIGHTS)
    return (
        'python -c "import torch, safetensors.torch; '
        f"weights = torch.load({source!r}, map_location='cpu', weights_only=True); "
        "safetensors.torch.save_file({name: tensor.clone() for name, tensor in weights.items()}, "
        f"{target!r}, {{'format': 'pt'}})\""
    )


def _files_of(folder):
    """`{file: the names to be found there}`, None for all names."""
    whole, index = os.path.join(folder, WEIGHTS), os.path.join(folder, INDEX)
    if os.path.isfile(whole):
        return {whole: None}
    weight_map = settings.read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise UserError(f"{index}: needs weight_map, the file of each tensor, and lacks it. Fetch it again.")
    files = {}
    for name, file in weight_map.items():
        if not isinstance(file, str) or os.path.basename(file) != file:
            raise UserError(f"{index}: needs the name of a file beside it for {name}. Received: {file!r}.")
        files.setdefault(os.path.join(folder, file), []).append(name)
    return files


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
