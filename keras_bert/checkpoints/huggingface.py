"""Hugging Face's weights: model.safetensors or pytorch_model.bin, or shards of either with an index."""

import json
import os
import re
import shutil
from collections.abc import Collection, Iterable

import ml_dtypes
import numpy as np
import safetensors.numpy

from keras_bert.checkpoints.stored_tensors import StoredTensors
from keras_bert.checkpoints.torch_file import TorchFile
from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.core.files import is_file, join
from keras_bert.core.yaml_and_json import read_json
from keras_bert.models.kind import ModelKind
from keras_bert.models.tensor_names import TensorName

# The types that BERTs are published in. A view instead of `safe_open`'s copy saves a third of the loading time.
_FLOATS = {"F16": np.float16, "BF16": ml_dtypes.bfloat16, "F32": np.float32, "F64": np.float64}


class SafetensorsFile:
    """A file whose header the safetensors library checks; values are views of the memory-mapped file."""

    def __init__(self, path: str) -> None:
        """Raises `UserError` if the file is missing, incomplete or not of this format."""
        if not files.is_file(path):
            raise UserError(f"{path}: is missing. Fetch it too.")
        with files.local_copy(path) as local:
            # First, because safetensors says of a file without permission to read that it is not there.
            self._content = files.mapped(local)
            try:
                with safetensors.safe_open(local, framework="np") as checked:
                    self.names = list(checked.keys())
            except (safetensors.SafetensorError, OSError) as error:
                is_pointer = self._content[:8].tobytes() == b"version "
                what = "a Git LFS pointer, not the weights: git lfs pull fetches them" if is_pointer else error
                raise UserError(f"{path}: is not a valid safetensors file ({what}). Fetch or write it again.") from None
        header_bytes = int.from_bytes(self._content[:8].tobytes(), "little")
        self._header = json.loads(self._content[8 : 8 + header_bytes].tobytes())
        self._first = 8 + header_bytes

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._header[name]["shape"])

    def kind(self, name: str) -> str:
        """The data type, as the format calls it: F32, BF16, I64, …"""
        return self._header[name]["dtype"]

    def value(self, name: str) -> np.ndarray | None:
        """A read-only view of a floating-point tensor; None for other types."""
        if self.kind(name) not in _FLOATS:
            return None
        begin, end = self._header[name]["data_offsets"]
        values = self._content[self._first + begin : self._first + end].view(_FLOATS[self.kind(name)])
        return values.reshape(self.shape(name))


def write_safetensors(path: str, tensors: dict[str, np.ndarray], beside: str) -> None:
    """Writes a file with the permissions of the file `beside`. Raises `OSError`, as on a full disk."""
    with files.written_locally(path) as local:
        try:
            safetensors.numpy.save_file(tensors, local, metadata={"format": "pt"})
        except safetensors.SafetensorError as error:
            if number := re.search(r"(?:os error |code: )(\d+)", str(error)):
                raise OSError(int(number[1]), os.strerror(int(number[1])), path) from None
            raise
    if not files.is_remote(path):
        shutil.copymode(beside, path)  # safetensors makes it readable for the owner only.


CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"

# In order of preference: a folder with several of them has the same weights in each.
WEIGHT_FILES = (WEIGHTS, INDEX, "pytorch_model.bin", "pytorch_model.bin.index.json")

_BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
_OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


class HuggingFaceTensors(StoredTensors):
    """The tensors of a Hugging Face folder.

    Names are matched with and without the `bert.` that models with heads have, with the prefix of a wrapper
    (`module.bert.…`), and in the form used before 2019 (`LayerNorm.gamma`). Buffers such as `position_ids` are skipped.
    """

    column = "huggingface"

    def __init__(self, folder: str, kind: ModelKind, names: Iterable[TensorName]) -> None:
        self._files: dict[str, tuple[str, SafetensorsFile | TorchFile]] = {}
        for path, listed in _files_of(folder).items():
            is_safetensors = path.endswith(".safetensors")
            file: SafetensorsFile | TorchFile = SafetensorsFile(path) if is_safetensors else TorchFile(path)
            for name in listed or file.names:
                if name not in file.names:
                    raise UserError(f"{path}: needs the tensor {name}, as the index beside it says, and lacks it.")
                self._files[name] = (path, file)
        paths = {path for path, _ in self._files.values()}
        path = paths.pop() if len(paths) == 1 else folder
        stored = [name.huggingface for name in names]
        known = {name for item in stored for name in (item.name, *item.also, *item.copies)}
        super().__init__(path, *_places(self._files, path, kind, known))

    def holder(self, name_in_file: str) -> SafetensorsFile | TorchFile:
        return self._files[name_in_file][1]

    def file_of(self, name_in_file: str) -> str:
        return self._files[name_in_file][0]


def has_weights(folder: str) -> bool:
    """Whether the folder has one of `WEIGHT_FILES`."""
    return _weights(folder) is not None


def has_all_weights(folder: str) -> bool:
    """Whether the folder has weights and, if they are sharded, every shard."""
    return has_weights(folder) and all(map(is_file, _files_of(folder)))


def require_weights(folder: str) -> str:
    """The path of the folder's weights, or of their index. Raises `UserError` if it has neither."""
    found = _weights(folder)
    if found is None:
        raise UserError(f"{folder}: needs {WEIGHTS} (or pytorch_model.bin) and lacks it.")
    return found


def shards(index: str) -> dict[str, list[str]]:
    """`{file name: names of its tensors}` of the index file `index`. Raises `UserError`."""
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise UserError(f"{index}: needs weight_map, the file of each tensor, and lacks it. Fetch it again.")
    named: dict[str, list[str]] = {}
    for name, file in weight_map.items():
        if not isinstance(file, str) or os.path.basename(file) != file:
            raise UserError(f"{index}: needs the name of a file beside it for {name}. Received: {file!r}.")
        named.setdefault(file, []).append(name)
    return named


def _weights(folder: str) -> str | None:
    """The path of the folder's weights, or of their index; None if it has neither."""
    paths = [join(folder, name) for name in WEIGHT_FILES]
    return next((path for path in paths if is_file(path)), None)


def _files_of(folder: str) -> dict[str, list[str] | None]:
    """`{path: names of the tensors to read there}`; None stands for all of them."""
    found = require_weights(folder)
    if not found.endswith(".json"):
        return {found: None}
    return {join(folder, file): names for file, names in shards(found).items()}


def _places(
    names: Collection[str], path: str, kind: ModelKind, known: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """`({name in the table: name in the file}, names in the file that the table lacks)`."""
    prefix = _prefix(names, path, kind)
    heads_prefix = prefix.removesuffix(kind.stored_prefix)
    places, others = places_in_classifier(names, kind, heads_prefix, known), []
    of_classifier = set(places.values())
    for name in names:
        if name in of_classifier:
            continue
        rest = name.removeprefix(prefix)
        for old, new in _OLD_NAMES.items():
            rest = rest.replace(old, new)
        head = rest.removeprefix(heads_prefix)
        if rest in _BUFFERS:
            continue
        in_encoder = f"{kind.stored_prefix}{rest}"
        is_encoders = bool(kind.stored_prefix) and head.startswith(kind.stored_prefix)
        if head in known and not is_encoders:
            places[head] = name
        elif name.startswith(prefix) and in_encoder in known and in_encoder not in places:
            places[in_encoder] = name
        else:
            others.append(name)
    return places, others


def places_in_classifier(
    names: Collection[str], kind: ModelKind, heads_prefix: str, known: Collection[str]
) -> dict[str, str]:
    """`{name in the table: name in the file}` of tensors that transformers' text classifier names differently."""
    found = {
        own + name.removeprefix(heads_prefix + theirs): name
        for own, theirs in kind.classification_names.items()
        for name in names
        if name.startswith(heads_prefix + theirs)
    }
    return found if all(name in known for name in found) else {}


def named_for_classifier(kind: ModelKind, name: str) -> str:
    """The name of a tensor in transformers' text classifier."""
    for own, theirs in kind.classification_names.items():
        if name.startswith(own):
            return theirs + name.removeprefix(own)
    return name


def _prefix(names: Collection[str], path: str, kind: ModelKind) -> str:
    """The prefix of the encoder's names in this file: nothing, `bert.`, or `bert.` after a wrapper's name."""
    for anchor in (kind.word_embeddings, *kind.also_word_embeddings):
        anchors = [name for name in names if name == anchor or name.endswith(f".{anchor}")]
        if anchors:
            break
    else:
        anchor = kind.word_embeddings
        raise UserError(
            f"{path}: needs the tensor {kind.stored_prefix}{anchor} and lacks it. Is it another kind of model?"
        )
    if len(anchors) > 1:
        raise UserError(f"{path}: needs one {kind.title}. Received: several ({', '.join(sorted(anchors))}).")
    return anchors[0].removesuffix(anchor)
