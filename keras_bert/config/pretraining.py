"""A pretraining experiment: what `configs/pretrain/*.yaml` hold."""

import os
from dataclasses import dataclass, field

from keras_bert import settings
from keras_bert.config.bert import BertConfig
from keras_bert.config.checks import require, require_positive, require_share
from keras_bert.config.initialization import InitializationConfig, named_initialization
from keras_bert.config.recipes import extended_model
from keras_bert.config.training import OptimizerConfig, TrainingConfig, phase_ends
from keras_bert.errors import UserError
from keras_bert.files import parent
from keras_bert.globs import expand

TFDS_PREFIX = "tfds:"  # Of text that is a data set of TensorFlow Datasets.

SOURCES = ("files", "python_documentation", "text")
PAIRS = ("nsp", "none")
PACKINGS = ("document", "full")


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
        require(self.source in SOURCES, "source", f"one of {', '.join(SOURCES)}", self.source)
        require(0.0 < self.validation_share < 1.0, "validation_share", "a share between 0 and 1", self.validation_share)
        require_positive(self, "shard_megabytes", "shards_per_group")


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
        require(self.pair in PAIRS, "pair", f"one of {', '.join(PAIRS)}", self.pair)
        require(self.packing in PACKINGS, "packing", f"one of {', '.join(PACKINGS)}", self.packing)
        require_share("random_next_share", self.random_next_share)
        require_share("short_sequence_share", self.short_sequence_share)


@dataclass
class MaskingConfig:
    """Which positions the masked LM predicts and what stands there (paper, section 3.1, task 1).

    Validation masks `validation_share`, so that runs which differ in `share` are measured on the same questions.
    """

    share: float = 0.15
    validation_share: float = 0.15
    mask_token_share: float = 0.8
    random_token_share: float = 0.1
    whole_word: bool = False
    refresh: str = "epoch"

    def __post_init__(self):
        for key in ("share", "validation_share", "mask_token_share", "random_token_share"):
            require_share(key, getattr(self, key))
        require(
            self.mask_token_share + self.random_token_share <= 1.0,
            "random_token_share",
            f"with mask_token_share {self.mask_token_share} at most 1 together",
            self.random_token_share,
        )
        require(self.refresh in ("epoch", "never"), "refresh", "epoch or never", self.refresh)


@dataclass
class PhaseConfig:
    """A stretch of one run with its own length: `share` of all steps at `sequence_length` tokens.

    `masking_share` is what it masks in place of `masking.share`.
    """

    share: float = 1.0
    sequence_length: int = 128
    batch_size: int = 256
    max_predictions_per_seq: int = 20
    masking_share: float | None = None

    def __post_init__(self):
        require_share("share", self.share)
        require(self.sequence_length >= 8, "sequence_length", "at least 8", self.sequence_length)
        require_positive(self, "batch_size")
        if self.masking_share is not None:
            require_share("masking_share", self.masking_share)
        require(
            0 < self.max_predictions_per_seq <= self.sequence_length,
            "max_predictions_per_seq",
            f"1 to sequence_length ({self.sequence_length})",
            self.max_predictions_per_seq,
        )


@dataclass
class PretrainConfig:
    """One pretraining experiment, whole.

    `init` is a model whose weights are gone on from (its architecture is then `model`, its vocabulary the default);
    without it the weights begin as `initialization` says. `examples` are sentences with [MASK] that the trained model fills in.
    """

    name: str = "pretrain"
    init: str | None = None
    model: BertConfig = field(default_factory=BertConfig)
    initialization: InitializationConfig = field(default_factory=InitializationConfig)
    vocabulary: VocabularyConfig = field(default_factory=VocabularyConfig)
    data: DataConfig = field(default_factory=DataConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    phases: list[PhaseConfig] = field(default_factory=lambda: [PhaseConfig()])
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    examples: list[str] = field(default_factory=list)

    def __post_init__(self):
        require(self.phases, "phases", "at least one phase", self.phases)
        total = sum(phase.share for phase in self.phases)
        require(abs(total - 1.0) < 1e-6, "phases", "shares that sum to 1", total)
        for index, phase in enumerate(self.phases):
            require(
                phase.sequence_length <= self.model.max_position_embeddings,
                f"phases.{index}.sequence_length",
                f"at most model.max_position_embeddings ({self.model.max_position_embeddings})",
                phase.sequence_length,
            )

        require(
            self.data.source != "text" or self.objective.pair == "none",
            "objective.pair",
            "none where data.source is text, which gives packed rows alone",
            self.objective.pair,
        )

        self._require_phases_of_whole_loops()

    def _require_phases_of_whole_loops(self):
        training, shares = self.training, [phase.share for phase in self.phases]
        loop = training.steps_per_loop

        def fits(steps):
            return steps > 0 and all(end % loop == 0 for end in phase_ends(steps, shares))

        if training.minutes or fits(training.steps):
            return
        multiples = range(loop, 1000 * loop, loop)
        nearest = [
            next(filter(fits, (training.steps + sign * steps for steps in multiples)), None) for sign in (-1, 1)
        ]  # fmt: skip
        known = " or ".join(f"{steps:,}" for steps in nearest if steps)
        require(
            False,
            "training.steps",
            f"phases that end at multiples of training.steps_per_loop ({loop}), as they do with "
            + (f"{known} steps" if known else "other shares"),
            training.steps,
        )

    def require_text(self):
        """Raises `UserError` unless the recipe names text to train on, and it is there."""
        if self.data.source == "python_documentation":
            return
        if not self.data.files:
            raise UserError("data.files: needs text to train on. Received: none. Give --data FILE, folder or 'glob'.")
        expand([name for name in self.data.files if not name.startswith(TFDS_PREFIX)])

    @classmethod
    def from_file(cls, path, overrides=None):
        """Reads a recipe; `overrides` (`{"section.key": value}`) win over it.

        The recipe's `model` is the name of a file in configs/models (or its path), or a
        mapping of `BertConfig` fields in which `extends` may name such a file. Its `initialization` is
        one of `config.initialization.NAMED`, or a mapping of `InitializationConfig` fields.
        """
        values = settings.read_yaml(path)
        values.setdefault("name", os.path.splitext(os.path.basename(os.fspath(path)))[0])
        return cls.from_mapping(values, overrides, parent(path))

    @classmethod
    def from_mapping(cls, values, overrides=None, folder=""):
        values, overrides = dict(values), dict(overrides or {})
        # `--set model=tiny` takes another file; `--set model.hidden_size=64` changes what the file gave.
        model = overrides.pop("model", values.get("model"))
        if model is not None:
            values["model"] = extended_model(model, folder)
        initialization = overrides.pop("initialization", values.get("initialization"))
        if initialization is not None:
            values["initialization"] = named_initialization(initialization)
        return settings.from_mapping(cls, settings.apply_overrides(cls, values, overrides))
