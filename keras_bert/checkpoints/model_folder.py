"""Opens a folder that holds a model, in Hugging Face's format or Google's, and loads it into a model."""

import dataclasses
import functools
import hashlib
import os
import unicodedata
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from keras_bert.checkpoints import google, huggingface, sentence_transformers
from keras_bert.checkpoints.adapter import AdaptedTensors, Adapter, is_adapter
from keras_bert.checkpoints.generation import with_generation
from keras_bert.checkpoints.hub import HubModel, hub_proposal, is_hub_name, is_web_address
from keras_bert.checkpoints.huggingface import CONFIG
from keras_bert.checkpoints.stored_tensors import LoadReport, StoredTensors
from keras_bert.config.inference import VectorConfig
from keras_bert.config.reading import FIELD, ReadingConfig, own_field
from keras_bert.core import files, whole_files
from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath
from keras_bert.core.program import PROGRAM
from keras_bert.core.yaml_and_json import read_json
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import ModelKind, google_configs, kind_of_config
from keras_bert.models.tensor_names import (
    ENCODER,
    MASKED_LM_HEAD,
    POOLER,
    TensorName,
    model_parts,
    parts,
    pretraining_parts,
)
from keras_bert.tasks.head import Head
from keras_bert.tasks.kind import TaskKind, kind_of_fields, task_kinds
from keras_bert.text.tokenizer_files import (
    FLAG_FIELDS,
    TOKENIZER,
    TOKENIZER_CONFIG,
    TokenizerSettings,
    read_flag,
    read_if_there,
)
from keras_bert.text.vocabulary import Vocabulary, first_capital, infer_casing, read_tokenizer_settings, vocabulary_file

if TYPE_CHECKING:
    import keras


def find_model_folder(path: files.StrPath) -> tuple[str, str]:
    """`(folder, "huggingface", "google" or "adapter")` of the model at `path`: in that folder or, for a run folder, in
    its `model/`.

    Raises:
        UserError: there is no model, or the path cannot be read.
    """
    if is_web_address(path):
        raise UserError(f"{path}: is the address of a web page, not a folder.{hub_proposal(path)}")
    try:
        if is_adapter(folder := whole_files.surviving_folder(path)):
            return folder, "adapter"
        for folder in map(whole_files.surviving_folder, (path, files.join(path, "model"))):
            has_config = files.is_file(files.join(folder, CONFIG))
            # Some folders hold both formats; take the one that can be read.
            if google.is_google_folder(folder) and not (has_config and huggingface.has_weights(folder)):
                return folder, "google"
            if has_config:
                return folder, "huggingface"
        # Of a sweep or a benchmark, say. Raises where files are not found for lack of permission.
        runs = _configs_below(path) if files.is_folder(path) else {}
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}).{hub_proposal(path)}") from None
    advice = f"Give one of the runs in it, such as {min(runs)}." if runs else f"Train one with: {PROGRAM} pretrain."
    raise UserError(
        f"{path}: needs a model folder (with {CONFIG} or {google_configs()[0]}) or a run folder that holds model/. "
        f"{advice}{hub_proposal(path)}"
    )


def newest_pretrained(folder: files.StrPath) -> str | None:
    """The newest run in `folder` with a model that is not fine-tuned; None if there is none."""
    configs = _configs_below(folder)
    pretrained = [path for path, config in configs.items() if FIELD not in read_json(config)]
    return max(pretrained, key=lambda path: files.modified(configs[path]), default=None)


def _configs_below(folder: files.StrPath) -> dict[str, str]:
    """`{run folder: its model's config.json}` of the runs in `folder` that hold a model."""
    paths = [files.join(folder, name) for name in files.list_folder(folder)]
    configs = {path: files.join(whole_files.surviving_folder(files.join(path, "model")), CONFIG) for path in paths}
    return {path: config for path, config in configs.items() if files.is_file(config)}


@dataclasses.dataclass
class ModelFolder:
    """An opened model folder; tensors are read on demand.

    Attributes:
        path: the folder; for a model of the hub, its folder in the cache.
        name: the MODEL argument that names exactly this model: the path as given, or `hf:NAME@COMMIT`.
        kind: "huggingface" or "google".
        config: the architecture.
        vocabulary_file: the path for `Vocabulary.from_file`: vocab.txt, spiece.model or another kind's file, or
            tokenizer.json if there is none.
        tokenizer: the settings of the tokenizer.
        other_fields: the other fields of config.json (`pad_token_id`, `id2label`, …).
        notes: lines to show the user, such as how the casing was inferred.
        hub_model: the model of the hub whose weights are fetched on demand; None for a folder.
        base: the model that an adapter in this folder adds to; None for a whole model.
    """

    path: str
    name: str
    kind: str
    config: BertConfig
    vocabulary_file: str
    tokenizer: TokenizerSettings
    other_fields: dict[str, Any] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)
    hub_model: HubModel | None = None
    base: "ModelFolder | None" = None

    def __post_init__(self) -> None:
        if not isinstance(own := own_field(self.other_fields), dict):
            raise UserError(f"{_config_file(self.path, self.kind)}: {FIELD}: needs an object. Received: {own!r}.")

    @property
    def lower_case(self) -> bool:
        return self.tokenizer.lower_case

    @functools.cached_property
    def tensors(self) -> StoredTensors:
        """The tensors in the folder. Raises `UserError` if the file is incomplete or cannot be fetched."""
        if self.hub_model:
            self.hub_model.fetch_weights()
        names = [name for part in self._names.values() for name in part]
        if self.base:
            return AdaptedTensors(self.base.tensors, Adapter(self.path), self.model_kind, names)
        if self.kind == "huggingface":
            return huggingface.HuggingFaceTensors(self.path, self.model_kind, names)
        return google.GoogleTensors(self.path, names)

    @property
    def model_kind(self) -> ModelKind:
        """BERT or another kind of model."""
        return kind_of_config(self.config)

    @functools.cached_property
    def head(self) -> Head | None:
        """The config of the task's head; None for a model without one.

        Raises:
            UserError: the weights are incomplete, or config.json does not fit them.
        """
        kind = self.task_kind
        if kind is None:
            return None
        num_outputs = len(self.tensors.read(self.names(kind.part)[-1]))
        return kind.head.from_fields(self.other_fields, num_outputs, _config_file(self.path, self.kind))

    @functools.cached_property
    def task_kind(self) -> TaskKind | None:
        """The kind of task that the model has a head for, by the class that config.json names or else by the tensors.

        A folder that names a class may hold tensors of others, left over from earlier training.
        """
        named = kind_of_fields(self.other_fields)
        kinds = [named] if named else []
        if self.kind == "google":  # Its files name no class: tensors tell run_classifier.py from run_squad.py.
            kinds += [kind for kind in task_kinds() if kind.in_google]
        elif not self.other_fields.get("architectures"):
            kinds += [kind for kind in task_kinds() if kind.in_transformers and self._may_be(kind)]
        return next((kind for kind in kinds if self._holds(kind.part, self._names.get(kind.part, []))), None)

    def _may_be(self, kind: TaskKind) -> bool:
        """Whether the tensors besides the head's fit a kind's models in transformers."""
        has_pooler, has_masked_lm = (
            any(map(self.tensors.holds, self._names.get(part, ()))) for part in (POOLER, MASKED_LM_HEAD)
        )
        return (has_pooler or not kind.pools) and not (kind.part in pretraining_parts(self.config) and has_masked_lm)

    @property
    def task(self) -> dict[str, Any]:
        """The field `keras_bert` of config.json: the `task` that the model was fine-tuned on, and settings such as
        `max_length`; empty for other models.
        """
        return own_field(self.other_fields)

    @property
    def reading(self) -> ReadingConfig:
        """How the model reads texts. Raises `UserError` if config.json has invalid settings for that."""
        file = files.join(self.path, CONFIG)
        return ReadingConfig.from_fields(self.other_fields, self.config.max_position_embeddings, file)

    def vectors(self, pooling: str | None = None) -> VectorConfig:
        """How vectors of texts are made: by `pooling` alone or, without it, as the folder says for
        sentence-transformers; by the mean if it says nothing.

        Raises:
            UserError: the folder asks for something that is not supported.
        """
        if pooling is not None:
            return VectorConfig(pooling)
        return sentence_transformers.read_vectors(self._vector_folder, self.lower_case) or VectorConfig()

    @property
    def vector_length(self) -> int:
        """The most tokens of a text to make a vector of: `reading.max_length`, or less if the folder says so for
        sentence-transformers. Raises `UserError` if that is not a number.
        """
        most = self.reading.max_length
        return min(most, sentence_transformers.read_max_length(self._vector_folder) or most)

    @property
    def _vector_folder(self) -> str:
        """The folder whose files say how vectors are made: its base's for an adapter by peft, which has none."""
        has_own = any(files.is_file(files.join(self.path, name)) for name in (CONFIG, sentence_transformers.MODULES))
        return self.path if has_own or not self.base else self.base._vector_folder

    @functools.cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary, padded to the model's number of rows; `notes` then mention rows without a piece.

        Raises:
            UserError: its file cannot be read or does not fit the model.
        """
        vocabulary, rows = Vocabulary.from_file(self.vocabulary_file), self.config.vocab_size
        vocabulary.require_supported(self.path, self.vocabulary_file)
        if len(vocabulary) > rows:
            raise UserError(
                f"{self.vocabulary_file}: needs at most {rows} rows, as the config's vocab_size says. "
                f"Received: {len(vocabulary)}. Is it another model's vocabulary?"
            )
        if len(vocabulary) < rows:
            self.notes.append(
                f"{self.vocabulary_file} has {len(vocabulary):,} pieces and the model {rows:,} rows; those after the "
                "last piece are taken as padding."
            )
        return vocabulary.padded(rows)

    def require_positions(self, max_length: int) -> None:
        """Raises `UserError` if rows of `max_length` tokens are longer than the model's positions."""
        if max_length > (most := self.config.max_position_embeddings):
            raise UserError(
                f"input.max_length: needs at most {most}, the max_position_embeddings of {self.path}. "
                f"Received: {max_length}. Give --max-length {most}."
            )

    def parts(self) -> list[str]:
        """The parts (of `tensor_names.parts`) that the folder holds, without heads of tasks other than the model's.

        Raises:
            UserError: a part is incomplete, or there is no encoder.
        """
        own = {*pretraining_parts(self.config), self.task_kind and self.task_kind.part}
        others = {kind.part for kind in task_kinds()} - own
        return [part for part, names in self._names.items() if part not in others and self._holds(part, names)]

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """`{name in the file: shape}` of all tensors, unknown ones included."""
        return {name: tuple(self.tensors.shape(name)) for name in self.tensors.unused([])}

    @functools.cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the weights, whatever the file that holds them."""
        digest = hashlib.sha256()
        for part in self.parts():
            for name, values in self.read(part).items():
                digest.update(f"{name.attribute} {values.shape}".encode() + values.tobytes())
        return digest.hexdigest()

    def read(self, part: str) -> dict[TensorName, npt.NDArray[np.float32]]:
        """The tensors of a part, in our orientation."""
        return {name: self.tensors.read(name) for name in self.names(part)}

    def load_into(self, model: "keras.Model", new_parts: Collection[str] = ()) -> LoadReport:
        """Copies everything that the model and the folder have in common into the model.

        Args:
            model: a model with an `encoder`, such as `BertForPreTraining`, or an encoder.
            new_parts: parts, of `tensor_names.parts`, that keep their initial values even if the folder holds them,
                such as a classifier for other labels.

        Raises:
            UserError: a part of the folder is incomplete, or a tensor does not have the shape that the model needs.
        """
        used: list[TensorName] = []
        made_new: list[str] = []
        replaced: list[str] = []
        for part, pairs in model_parts(model).items():
            names = [name for name, _ in pairs]
            if part in new_parts or not self._holds(part, names):
                for name in names:
                    (replaced if self.tensors.holds(name) else made_new).append(self.tensors.stored_name(name))
                used += names
                continue
            for name, variable in pairs:
                variable.assign(self.tensors.read(name, tuple(variable.shape)))
            used += names
        return LoadReport(self.tensors.path, made_new, self.tensors.unused(used), replaced)

    def names(self, part: str) -> list[TensorName]:
        """The names of a part's tensors in this model."""
        return self._names[part]

    @functools.cached_property
    def _names(self) -> dict[str, list[TensorName]]:
        return parts(self.config)

    def _holds(self, part: str, names: list[TensorName]) -> bool:
        present = [name for name in names if self.tensors.holds(name)]
        if present and len(present) < len(names) or part == ENCODER and not present:
            absent = next(name for name in names if name not in present)
            raise UserError(f"{self.tensors.path}: needs the tensor {self.tensors.stored_name(absent)} and lacks it.")
        return bool(present)


def open_model_folder(path: files.StrPath, lower_case: bool | None = None) -> ModelFolder:
    """Opens the model at `path`: reads all its files but the weights.

    Args:
        path: a run folder, a model folder, a Hugging Face folder or Google's; a peft adapter's folder, added to the
            model that it names; or `hf:NAME[@REVISION]`, a model of the hub, which is fetched without its weights.
        lower_case: whether its tokenizer lower-cases; None: as the folder says or, if it does not, as its vocabulary
            suggests.

    Raises:
        UserError: there is no model, it is not supported, or a file is missing or broken.

    Example:
        folder = keras_bert.open_model_folder("runs/demo")
        folder.config.hidden_size, folder.lower_case      # Without reading a weight.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise UserError(f"path: needs a model's folder or hf:NAME. Received: {path!r}. Give its path as text.")
    path = os.fspath(path)
    if is_hub_name(path):
        hub_model = HubModel(path)
        folder = _opened(hub_model.folder, hub_model.name, hub_model.kind, lower_case)
        return dataclasses.replace(folder, hub_model=hub_model, notes=[*hub_model.notes, *folder.notes])
    found, kind = find_model_folder(path)
    if kind == "adapter":
        return _with_adapter(found, path, lower_case)
    folder = _opened(found, path, kind, lower_case)
    if kind == "google":
        google.find_checkpoint(found)
    else:
        huggingface.require_weights(found)
    return folder


def _with_adapter(folder: str, name: str, lower_case: bool | None) -> ModelFolder:
    adapter = Adapter(folder)
    base = open_model_folder(adapter.base, lower_case)
    fields = {**base.other_fields, **base.model_kind.other_fields(adapter.fields)}
    note = f"{name}: an adapter, added to {base.name}."
    return dataclasses.replace(
        base, path=folder, name=name, other_fields=fields, notes=[*base.notes, note], hub_model=None, base=base
    )


def vocabulary_path(path: files.StrPath) -> str:
    """The file of a vocabulary given by its path or as `hf:NAME`, a model that is fetched without its weights."""
    return open_model_folder(path).vocabulary_file if is_hub_name(path) else os.fspath(path)


def _opened(folder: str, name: str, kind: str, lower_case: bool | None) -> ModelFolder:
    config_file = _config_file(folder, kind)
    config = BertConfig.from_file(config_file)
    if kind == "google":
        vocabulary = google.vocabulary_file(folder, files.list_folder(folder))
        notes = []
        if lower_case is None:
            lower_case, reason = infer_casing(vocabulary)
            notes.append(reason)
        tokenizer = TokenizerSettings(lower_case, quotes=False)  # Google's ALBERT leaves them as they are.
    else:
        config, vocabulary = with_generation(config, folder), vocabulary_file(folder)
        tokenizer, notes = read_tokenizer_settings(folder, lower_case)
    other_fields = kind_of_config(config).other_fields(read_json(config_file))
    return ModelFolder(folder, name, kind, config, vocabulary, tokenizer, other_fields, notes)


def _config_file(folder: str, kind: str) -> str:
    return (kind == "google" and google.config_file(folder)) or files.join(folder, CONFIG)


def given_vocabulary(path: StrPath, lower_case: bool | None) -> tuple[Vocabulary, bool]:
    """`(the vocabulary, whether texts are lower-cased for it)`.

    Args:
        path: its file or `hf:NAME`.
        lower_case: what the user says; None for what its folder says or, without a folder, what its pieces suggest.

    Raises:
        UserError: there is no such vocabulary, it is for texts of the other casing, or its folder's tokenizer is not
            BERT's own.
    """
    vocabulary = Vocabulary.from_file(vocabulary_path(path))
    flags = _stated(path)
    stated = flags["lower_case"]
    found = first_capital(vocabulary.tokens) is None if stated is None else stated
    casing = found if lower_case is None else lower_case
    if casing != found and (stated is not None or not found or _is_uncased(vocabulary)):
        given, needed, other = ("--uncased", "an uncased", "cased") if casing else ("--cased", "a cased", "uncased")
        raise UserError(
            f"{given}: needs {needed} vocabulary. Received: {path}, which is {other}. Leave {given} out, or give "
            "another vocabulary."
        )
    if "split_chinese" in vocabulary.tokenizer_settings:
        splits = flags["split_chinese"] is not False
        TokenizerSettings(casing, flags["strip_accents"], splits).require_berts_own(path, "vocabulary")
    return vocabulary, casing


def given_prefix_space(path: StrPath, vocabulary: Vocabulary) -> bool:
    """Whether byte-level BPE reads sentences as if a space came before them.

    Args:
        path: the vocabulary's file or `hf:NAME`, whose folder may say so.
    """
    if "prefix_space" not in vocabulary.tokenizer_settings:
        return True
    if is_hub_name(path):
        return open_model_folder(path).tokenizer.prefix_space
    folder = files.parent(path)
    is_described = any(files.is_file(files.join(folder, name)) for name in (TOKENIZER_CONFIG, TOKENIZER))
    if not is_described and not huggingface.has_weights(folder):  # A vocabulary of one's own, without a model.
        return True
    return read_tokenizer_settings(folder)[0].prefix_space


def _stated(path: StrPath) -> dict[str, bool | None]:
    """The flags of `TokenizerSettings` that the folder of a vocabulary states; None for those that it does not."""
    if is_hub_name(path):
        tokenizer = open_model_folder(path).tokenizer
        return {name: getattr(tokenizer, name) for name in FLAG_FIELDS}
    beside = files.join(files.parent(path), TOKENIZER_CONFIG)
    fields = read_if_there(beside)
    return {name: read_flag(fields, field, beside) for name, field in FLAG_FIELDS.items()}


def _is_uncased(vocabulary: Vocabulary) -> bool:
    """Whether no piece has a capital or an accent, but some could have."""
    letters = "".join(token for token in vocabulary.tokens if token.strip("#▁").isalpha())
    has_accents = any(unicodedata.category(point) == "Mn" for point in unicodedata.normalize("NFD", letters))
    return letters == letters.lower() != letters.upper() and not has_accents
