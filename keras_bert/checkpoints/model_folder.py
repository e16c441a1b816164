"""A folder that holds a BERT, of whatever kind: opened, read into a model, and written.

The kinds are Hugging Face's folder, which is also the one written here, and Google's (`checkpoints.google`).
"""

import dataclasses
import functools
import math

from keras_bert import files, settings
from keras_bert.checkpoints import google, huggingface
from keras_bert.checkpoints.hub import HubModel
from keras_bert.checkpoints.hub_name import hub_proposal, is_hub_name, is_web_address
from keras_bert.checkpoints.huggingface import CONFIG
from keras_bert.checkpoints.huggingface_writing import write_huggingface_folder
from keras_bert.checkpoints.load_report import LoadReport
from keras_bert.checkpoints.model_card import write_card
from keras_bert.checkpoints.names import (
    CLASSIFIER,
    ENCODER,
    FEATURE_TAGGER,
    PARTS,
    SPAN_HEAD,
    model_parts,
    model_variables,
    part_names,
)
from keras_bert.checkpoints.stored_tensors import StoredTensors
from keras_bert.checkpoints.tokenizer_settings import (
    VOCABULARY,
    TokenizerSettings,
    judged_casing,
    read_tokenizer_settings,
    vocabulary_file,
)
from keras_bert.config.bert import BertConfig
from keras_bert.config.classification import ClassificationConfig
from keras_bert.config.feature_tagging import FeatureTaggingConfig
from keras_bert.config.heads import TASK_HEADS
from keras_bert.config.reading import FIELD
from keras_bert.config.span_extraction import SpanExtractionConfig
from keras_bert.errors import UserError
from keras_bert.program import PROGRAM

# Where a head's tensors stand, if not in `CLASSIFIER`.
_HEAD_PARTS = {SpanExtractionConfig.architecture: SPAN_HEAD, FeatureTaggingConfig.architecture: FEATURE_TAGGER}


@dataclasses.dataclass
class ModelFolder:
    """What a folder holds; the tensors are read when asked for.

    Attributes:
        path: the folder; of a model of the hub its place in the cache.
        name: how MODEL is written for just this one: the path as it was given, or `hf:NAME@COMMIT`.
        kind: "huggingface" or "google".
        config: its `BertConfig`.
        vocabulary_file: what `Vocabulary.from_file` takes: vocab.txt, or tokenizer.json where there is no other.
        tokenizer: its `TokenizerSettings`.
        other_fields: what else config.json says (`pad_token_id`, `id2label`, …).
        notes: lines that a user should see, such as a casing that was judged.
        hub_model: the `HubModel` whose weights are fetched when they are asked for; None for a folder.
    """

    path: str
    name: str
    kind: str
    config: BertConfig
    vocabulary_file: str
    tokenizer: TokenizerSettings
    other_fields: dict = dataclasses.field(default_factory=dict)
    notes: list = dataclasses.field(default_factory=list)
    hub_model: HubModel | None = None

    @property
    def lower_case(self):
        return self.tokenizer.lower_case

    @functools.cached_property
    def tensors(self) -> StoredTensors:
        """The `StoredTensors`. Raises `UserError` where the file is not whole, or cannot be fetched."""
        if self.hub_model:
            self.hub_model.fetch_weights()
        return (huggingface.HuggingFaceTensors if self.kind == "huggingface" else google.GoogleTensors)(self.path)

    @functools.cached_property
    def head(self):
        """What a task put on the encoder: one of `config.heads.TASK_HEADS` in its values, None where there is none.

        Raises:
            UserError: the weights are not whole, or config.json does not fit them.
        """
        named = self.other_fields.get("architectures") or ()
        if self.kind == "google":  # Its own files name no class; the tensors tell run_classifier.py from run_squad.py.
            named = (*named, ClassificationConfig.architecture, SpanExtractionConfig.architecture)
        if "features" in self.task:  # `architectures` names what Hugging Face has a class for.
            named = (FeatureTaggingConfig.architecture,)
        for architecture in named:
            part = _HEAD_PARTS.get(architecture, CLASSIFIER)
            *_, bias = names = self.names(part)
            if architecture in TASK_HEADS and self._holds(part, names):
                config_file = files.join(self.path, google.CONFIG if self.kind == "google" else CONFIG)
                return TASK_HEADS[architecture].from_fields(
                    self.other_fields, len(self.tensors.read(bias)), config_file
                )
        return None

    @property
    def task(self):
        """What config.json says of the task that the model was fine-tuned on here: `task` (its name) and what its
        problem described, such as `max_length`; empty for other models.
        """
        return self.other_fields.get(FIELD) or {}

    def require_length(self, vocabulary_length):
        """Raises `UserError` for a vocabulary that is not the model's."""
        if vocabulary_length != self.config.vocab_size:
            raise UserError(
                f"{self.vocabulary_file}: needs {self.config.vocab_size} rows, as the config's vocab_size says. "
                f"Received: {vocabulary_length}. Is it another model's vocabulary?"
            )

    def require_positions(self, max_length):
        """Raises `UserError` for rows of more tokens than the model has positions."""
        if max_length > self.config.max_position_embeddings:
            raise UserError(
                f"input.max_length: needs at most {self.config.max_position_embeddings}, the max_position_embeddings "
                f"of {self.path}. Received: {max_length}."
            )

    def parts(self):
        """The parts of `names.PARTS` that the folder holds.

        Raises:
            UserError: a part has some of its tensors and lacks others, or the encoder is not there.
        """
        return [part for part in PARTS if self._holds(part, self.names(part))]

    def tensor_shapes(self):
        """`{name in the file: shape}` of the tensors of a BERT and of those not known."""
        return {name: tuple(self.tensors.shape(name)) for name in self.tensors.unused([])}

    def read(self, part):
        """`{TensorName: float32 array in our orientation}` of a part."""
        return {name: self.tensors.read(name) for name in self.names(part)}

    def load_into(self, model, new_parts=()):
        """Copies into a model all that it and the folder have in common; returns the `LoadReport`.

        Args:
            model: a model with an `encoder`, such as `BertForPreTraining`, or a `BertEncoder`.
            new_parts: parts of `names.PARTS` that keep their first values though the folder holds them, such as the
                classifier of other labels.

        Raises:
            UserError: a part of the folder is incomplete, or a tensor has not the shape that the model needs.
        """
        used, made_new, replaced = [], [], []
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

    def names(self, part):
        """The `TensorName`s of a part of this model."""
        return part_names(part, self.config.num_hidden_layers)

    def _holds(self, part, names):
        present = [name for name in names if self.tensors.holds(name)]
        if present and len(present) < len(names) or part == ENCODER and not present:
            absent = next(name for name in names if name not in present)
            raise UserError(f"{self.tensors.path}: needs the tensor {self.tensors.stored_name(absent)} and lacks it.")
        return bool(present)


def find_model_folder(path):
    """`(folder, kind)` of the folder that `path` names: itself, or the `model/` of a run folder.

    Raises:
        UserError: no model is there, or its store cannot be read.
    """
    if is_web_address(path):
        raise UserError(f"{path}: is the address of a page, not a folder.{hub_proposal(path)}")
    try:
        for folder in map(files.standing, (path, files.join(path, "model"))):
            has_config = files.is_file(files.join(folder, CONFIG))
            # Some folders hold both kinds; the one that can be read is taken.
            if google.is_google_folder(folder) and not (has_config and huggingface.has_weights(folder)):
                return folder, "google"
            if has_config:
                return folder, "huggingface"
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}).{hub_proposal(path)}") from None
    raise UserError(
        f"{path}: needs a model folder (with {CONFIG} or {google.CONFIG}) or a run folder that holds model/. "
        f"Train one with: {PROGRAM} pretrain.{hub_proposal(path)}"
    )


def newest_pretrained(folder):
    """The newest of the runs in `folder` that holds a model not yet fine-tuned on a task; None where there is none."""
    paths = [files.join(folder, name) for name in files.list_folder(folder)]
    configs = {path: files.join(files.standing(files.join(path, "model")), CONFIG) for path in paths}
    found = [path for path in paths if files.is_file(configs[path])]
    pretrained = [path for path in found if FIELD not in settings.read_json(configs[path])]
    return max(pretrained, key=lambda path: files.modified(configs[path]), default=None)


def open_model_folder(path, lower_case=None):
    """Reads the small files of the folder that `path` names.

    Args:
        path: a run folder, a model folder, a Hugging Face folder or Google's; or `hf:NAME[@REVISION]`, a model of the
            hub, whose small files are then fetched.
        lower_case: whether its tokenizer lower-cases; where None, as the folder says, or as its vocabulary looks.

    Raises:
        UserError: no model there, one that is not supported, or a file is missing or broken.
    """
    if is_hub_name(path):
        hub_model = HubModel(path)
        folder = _opened(hub_model.folder, hub_model.name, hub_model.kind, lower_case)
        return dataclasses.replace(folder, hub_model=hub_model, notes=[*hub_model.notes, *folder.notes])
    found, kind = find_model_folder(path)
    folder = _opened(found, path, kind, lower_case)
    (google.find_checkpoint if kind == "google" else huggingface.require_weights)(found)
    return folder


def describe_folder(path, card):
    """Writes another `ModelCard` into a model folder."""
    folder = open_model_folder(path)
    fields = {**folder.other_fields, **dataclasses.asdict(folder.config)}
    parameters = sum(map(math.prod, folder.tensor_shapes().values()))
    write_card(path, card, folder.config, fields, parameters, folder.lower_case)


def vocabulary_path(path):
    """The file of a vocabulary that is given by its path, or as `hf:NAME`, whose vocabulary is then fetched."""
    return open_model_folder(path).vocabulary_file if is_hub_name(path) else path


def _opened(folder, name, kind, lower_case):
    if kind == "google":
        return _open_google(folder, name, lower_case)
    config_file = files.join(folder, CONFIG)
    config = BertConfig.from_file(config_file)
    vocabulary = vocabulary_file(folder)
    tokenizer = read_tokenizer_settings(folder)
    if lower_case is not None:
        tokenizer = dataclasses.replace(tokenizer, lower_case=lower_case)
    return ModelFolder(folder, name, kind, config, vocabulary, tokenizer, _other_fields(config_file))


def _open_google(folder, name, lower_case):
    config_file = files.join(folder, google.CONFIG)
    config = BertConfig.from_file(config_file)
    vocabulary = files.join(folder, VOCABULARY)
    if not files.is_file(vocabulary):
        raise UserError(f"{folder}: needs {VOCABULARY} and lacks it.")
    notes = []
    if lower_case is None:
        lower_case, reason = judged_casing(vocabulary)
        notes.append(reason)
    tokenizer = TokenizerSettings(lower_case)
    return ModelFolder(folder, name, "google", config, vocabulary, tokenizer, _other_fields(config_file), notes)


def _other_fields(config_file):
    fields = {item.name for item in dataclasses.fields(BertConfig)}
    return {key: value for key, value in settings.read_json(config_file).items() if key not in fields}


def write_model_folder(
    path, model, vocabulary, lower_case, strip_accents=None, split_chinese=True, head=None, task=None, card=None
):
    """Writes a model to `path`, whole or not at all, in Hugging Face's format.

    Args:
        path: the folder; replaced if there.
        model: a model with an `encoder`, such as `BertForPreTraining`; its weights are written in float32.
        vocabulary: a `text.Vocabulary`.
        lower_case, strip_accents, split_chinese: its tokenizer's, as for `WordPieceTokenizer`.
        head: of a model with a task's head its config, one of `config.heads.TASK_HEADS` in its values.
        task: what this program knows of the task that the model was fine-tuned on, a plain mapping; see
            `ModelFolder.task`.
        card: what its README.md says, a `ModelCard`.
    """
    kind = type(model).__name__
    if head and head.architecture != kind:
        raise ValueError(f"head: needs the config of a {kind}. Received: that of a {head.architecture}.")
    if hasattr(head, "num_labels") and head.num_labels != model.num_labels:
        raise ValueError(f"head: needs {model.num_labels} labels, as the model. Received: {head.num_labels}.")
    tensors = {name: variable.numpy() for name, variable in model_variables(model)}
    tokenizer = TokenizerSettings(lower_case, strip_accents, split_chinese)
    fields = head.to_fields() if head else {"architectures": [kind]}
    if task:
        fields[FIELD] = {**fields.get(FIELD, {}), **task}
    write_huggingface_folder(path, model.config, tensors, vocabulary, tokenizer, fields, card)
