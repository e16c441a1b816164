"""Every setting, its default and what it refuses.

`BertConfig` is the architecture, in the field names of Google's bert_config.json and Hugging
Face's config.json. `PretrainConfig` is a recipe: what `configs/pretrain/*.yaml` hold.
"""

import dataclasses
import json
import os
from dataclasses import dataclass, field

from keras_bert import settings
from keras_bert.errors import UserError
from keras_bert.files import atomic_write, exists, expand, list_folder

ACTIVATIONS = ("gelu", "gelu_new", "relu", "tanh")
SOURCES = ("files", "python_documentation", "text")
PAIRS = ("nsp", "none")
PACKINGS = ("document", "full")
STRATEGIES = ("auto", "one", "mirrored", "multiworker", "tpu")
SCHEDULES = ("linear", "cosine", "polynomial", "constant")
PRECISIONS = ("float32", "bfloat16")


def _require(condition, key, needed, received):
    """Raises the `ValueError` that `settings.from_mapping` turns into a line with the section's name."""
    if not condition:
        raise ValueError(f"{key}: needs {needed}. Received: {received!r}.")


def _require_share(key, value):
    _require(0.0 <= value <= 1.0, key, "a share from 0 to 1", value)


def _require_positive(settings_object, *keys):
    for key in keys:
        value = getattr(settings_object, key)
        _require(value > 0, key, "a value above 0", value)


@dataclass
class BertConfig:
    """The architecture of one BERT (paper, section 3). Defaults are BERT-base, uncased.

    `hidden_size` H, `num_hidden_layers` L and `num_attention_heads` A are the paper's letters.
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12

    def __post_init__(self):
        _require_positive(
            self, "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
            "intermediate_size", "max_position_embeddings", "type_vocab_size",
            "initializer_range", "layer_norm_eps",
        )  # fmt: skip
        _require(
            self.hidden_size % self.num_attention_heads == 0,
            "hidden_size",
            f"a multiple of num_attention_heads ({self.num_attention_heads})",
            self.hidden_size,
        )
        _require(self.hidden_act in ACTIVATIONS, "hidden_act", f"one of {', '.join(ACTIVATIONS)}", self.hidden_act)
        for key in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            _require(0.0 <= getattr(self, key) < 1.0, key, "a rate from 0 to below 1", getattr(self, key))

    @classmethod
    def from_mapping(cls, values, where=""):
        return settings.from_mapping(cls, values, where)

    @classmethod
    def from_file(cls, path):
        """Reads a YAML model config, Google's bert_config.json or Hugging Face's config.json.

        Of a JSON file the fields that are not the architecture's are passed over; in YAML
        they are refused, because there a person wrote them.
        """
        values = settings.read_yaml(path)
        if os.fspath(path).endswith(".json"):
            kind = values.get("model_type", "bert")
            if kind != "bert":
                raise UserError(f"{path}: model_type {kind!r} is not supported; a BERT is needed.")
            names = {item.name for item in dataclasses.fields(cls)}
            values = {key: value for key, value in values.items() if key in names}
        return settings.from_mapping(cls, values, os.fspath(path))

    def to_file(self, path):
        with atomic_write(path) as stream:
            if os.fspath(path).endswith(".json"):
                stream.write(json.dumps(dataclasses.asdict(self), indent=2) + "\n")
            else:
                stream.write(settings.to_yaml(self))


@dataclass
class VocabularyConfig:
    """`file` is a vocab.txt; without one, `model.vocab_size` pieces are learned from the training text."""

    file: str | None = None
    lower_case: bool = True


@dataclass
class DataConfig:
    """Where the text comes from: `files`, or `python_documentation`, which every installation of Python carries.

    Both are prepared: tokenised once into shards. `text` is for what cannot be: plain lines of `files` (or the corpus
    `tfds:NAME`) are tokenised as the run goes; see `data.text_reader`.
    """

    source: str = "files"
    files: list[str] = field(default_factory=list)
    validation_share: float = 0.02
    shard_megabytes: float = 16.0
    shards_per_group: int = 4

    def __post_init__(self):
        _require(self.source in SOURCES, "source", f"one of {', '.join(SOURCES)}", self.source)
        _require(
            0.0 < self.validation_share < 1.0, "validation_share", "a share between 0 and 1", self.validation_share
        )
        _require_positive(self, "shard_megabytes", "shards_per_group")


@dataclass
class ObjectiveConfig:
    """What stands in a row, and whether the next sentence is predicted.

    `pair` "nsp": segment pairs for next sentence prediction (paper, section 3.1, task 2, and appendix A.2), of which
    the two shares speak. `pair` "none": whole sentences packed to the length and the masked LM alone; `packing` is
    then "document" (rows end with their document) or "full" (they go on in the next), RoBERTa's DOC-SENTENCES and
    FULL-SENTENCES (Liu et al. 2019, section 4.2).
    """

    pair: str = "nsp"
    packing: str = "full"
    random_next_share: float = 0.5
    short_sequence_share: float = 0.1

    def __post_init__(self):
        _require(self.pair in PAIRS, "pair", f"one of {', '.join(PAIRS)}", self.pair)
        _require(self.packing in PACKINGS, "packing", f"one of {', '.join(PACKINGS)}", self.packing)
        _require_share("random_next_share", self.random_next_share)
        _require_share("short_sequence_share", self.short_sequence_share)


@dataclass
class MaskingConfig:
    """Which positions the masked LM predicts and what stands there (paper, section 3.1, task 1)."""

    share: float = 0.15
    mask_token_share: float = 0.8
    random_token_share: float = 0.1
    whole_word: bool = False
    refresh: str = "epoch"

    def __post_init__(self):
        for key in ("share", "mask_token_share", "random_token_share"):
            _require_share(key, getattr(self, key))
        _require(
            self.mask_token_share + self.random_token_share <= 1.0,
            "random_token_share",
            f"with mask_token_share {self.mask_token_share} at most 1 together",
            self.random_token_share,
        )
        _require(self.refresh in ("epoch", "never"), "refresh", "epoch or never", self.refresh)


@dataclass
class PhaseConfig:
    """A stretch of one run with its own length: `share` of all steps at `sequence_length` tokens."""

    share: float = 1.0
    sequence_length: int = 128
    batch_size: int = 256
    max_predictions_per_seq: int = 20

    def __post_init__(self):
        _require_share("share", self.share)
        _require(self.sequence_length >= 8, "sequence_length", "at least 8", self.sequence_length)
        _require_positive(self, "batch_size")
        _require(
            0 < self.max_predictions_per_seq <= self.sequence_length,
            "max_predictions_per_seq",
            f"1 to sequence_length ({self.sequence_length})",
            self.max_predictions_per_seq,
        )


@dataclass
class OptimizerConfig:
    """Adam with decoupled weight decay, linear warm-up, and by default linear decay (paper, appendix A.2).

    `clip_norm` bounds the norm over all gradients together, after their reduction over replicas.
    """

    learning_rate: float = 1e-4
    warmup_steps: int = 10_000
    schedule: str = "linear"
    polynomial_power: float = 2.0
    weight_decay: float = 0.01
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-6
    clip_norm: float = 1.0

    def __post_init__(self):
        _require_positive(self, "learning_rate", "polynomial_power", "epsilon", "clip_norm")
        _require(self.schedule in SCHEDULES, "schedule", f"one of {', '.join(SCHEDULES)}", self.schedule)
        _require(self.warmup_steps >= 0, "warmup_steps", "0 or more", self.warmup_steps)
        _require(self.weight_decay >= 0, "weight_decay", "0 or more", self.weight_decay)
        for key in ("beta_1", "beta_2"):
            _require(0.0 <= getattr(self, key) < 1.0, key, "a value from 0 to below 1", getattr(self, key))


@dataclass
class TrainingConfig:
    """How long, on what, and how often to look. Counts are optimiser steps unless the name says otherwise.

    `accumulation` computes each replica's part of a batch in that many slices, one after the other, for batches
    that do not fit in memory; the numbers stay the same. Of the checkpoints the newest `keep_checkpoints`, the best
    by validation loss and those of every `keep_every` steps stay. `max_minutes` ends one start of the run, with a
    checkpoint; 0 is no limit.
    """

    steps: int = 1_000_000
    seed: int = 1
    strategy: str = "auto"
    devices: list[str] = field(default_factory=list)
    tpu: str = "local"
    precision: str = "float32"
    jit_compile: bool = False
    accumulation: int = 1
    log_every: int = 100
    evaluate_every: int = 10_000
    evaluation_examples: int = 2_048
    checkpoint_every: int = 1_000
    keep_checkpoints: int = 3
    keep_every: int = 0
    max_minutes: float = 0.0

    def __post_init__(self):
        _require_positive(
            self,
            "steps",
            "accumulation",
            "log_every",
            "evaluate_every",
            "evaluation_examples",
            "checkpoint_every",
            "keep_checkpoints",
        )
        for key in ("keep_every", "max_minutes"):
            _require(getattr(self, key) >= 0, key, "0 or more", getattr(self, key))
        _require(self.seed >= 0, "seed", "0 or more", self.seed)
        _require(self.strategy in STRATEGIES, "strategy", f"one of {', '.join(STRATEGIES)}", self.strategy)
        _require(self.precision in PRECISIONS, "precision", f"one of {', '.join(PRECISIONS)}", self.precision)


@dataclass
class PretrainConfig:
    """One pretraining experiment, whole.

    `init` is a model whose weights are gone on from (its architecture is then `model`, its vocabulary the default);
    `examples` are sentences with [MASK] that the trained model fills in.
    """

    name: str = "pretrain"
    init: str | None = None
    model: BertConfig = field(default_factory=BertConfig)
    vocabulary: VocabularyConfig = field(default_factory=VocabularyConfig)
    data: DataConfig = field(default_factory=DataConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    phases: list[PhaseConfig] = field(default_factory=lambda: [PhaseConfig()])
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    examples: list[str] = field(default_factory=list)

    def __post_init__(self):
        _require(self.phases, "phases", "at least one phase", self.phases)
        total = sum(phase.share for phase in self.phases)
        _require(abs(total - 1.0) < 1e-6, "phases", "shares that sum to 1", total)
        for index, phase in enumerate(self.phases):
            _require(
                phase.sequence_length <= self.model.max_position_embeddings,
                f"phases.{index}.sequence_length",
                f"at most model.max_position_embeddings ({self.model.max_position_embeddings})",
                phase.sequence_length,
            )

        _require(
            self.data.source != "text" or self.objective.pair == "none",
            "objective.pair",
            "none where data.source is text, which gives packed rows alone",
            self.objective.pair,
        )

    def require_text(self):
        """Raises `UserError` unless the recipe names text to train on, and it is there."""
        if self.data.source == "python_documentation":
            return
        if not self.data.files:
            raise UserError("data.files: needs text to train on. Received: none. Give --data FILE, folder or 'glob'.")
        expand(self.data.files)

    @classmethod
    def from_file(cls, path, overrides=None):
        """Reads a recipe; `overrides` (`{"section.key": value}`) win over it.

        The recipe's `model` is the name of a file in configs/models (or its path), or a
        mapping of `BertConfig` fields in which `extends` may name such a file.
        """
        values = settings.read_yaml(path)
        values.setdefault("name", os.path.splitext(os.path.basename(os.fspath(path)))[0])
        return cls.from_mapping(values, overrides, os.path.dirname(os.fspath(path)))

    @classmethod
    def from_mapping(cls, values, overrides=None, folder=""):
        values, overrides = dict(values), dict(overrides or {})
        # `--set model=tiny` takes another file; `--set model.hidden_size=64` changes what the file gave.
        model = overrides.pop("model", values.get("model"))
        if model is not None:
            values["model"] = _extended_model(model, folder)
        return settings.from_mapping(cls, settings.apply_overrides(cls, values, overrides))


def _extended_model(values, folder):
    if isinstance(values, str):
        values = {"extends": values}
    if not isinstance(values, dict) or "extends" not in values:
        return values
    values = dict(values)
    base = settings.to_mapping(BertConfig.from_file(find_config("models", values.pop("extends"), folder)))
    return {**base, **values}


def configs_folder():
    """The recipes: beside the package in a checkout, inside it in an installed copy."""
    package = os.path.dirname(os.path.abspath(__file__))
    inside = os.path.join(package, "configs")
    return inside if os.path.isdir(inside) else os.path.join(os.path.dirname(package), "configs")


def find_config(kind, name, folder=""):
    """The file of a config given by path (also relative to `folder`) or by name in configs/`kind`."""
    known = os.path.join(configs_folder(), kind)
    for path in (name, os.path.join(folder, name), os.path.join(known, f"{name}.yaml")):
        if exists(path) and not os.path.isdir(path):
            return path
    names = ", ".join(os.path.splitext(entry)[0] for entry in list_folder(known))
    raise UserError(f"{name}: no such config. Give a file, or one of configs/{kind}: {names}.")
