"""A fine-tuning experiment: what `configs/finetune/*.yaml` hold."""

import os
from dataclasses import dataclass, field

from keras_bert import settings
from keras_bert.config.checks import require, require_multiple, require_positive
from keras_bert.config.classification import PROBLEM_TYPES, SINGLE_LABEL
from keras_bert.config.features import TAGGING_TASKS, FeaturesConfig
from keras_bert.config.reading import LONG, TRUNCATE
from keras_bert.config.training import OptimizerConfig, RunConfig


@dataclass
class TaskDataConfig:
    """Where a task's examples stand.

    `folder` holds the task's own files (GLUE's TSV folders), or data sets that TFDS prepared; without it TFDS's own
    folder is taken, and the data set fetched where it is not there. All else is for one's own files: `train`, `dev` and
    `test`, of which, without `dev`, a `dev_share` of `train` is held out.

    For `text` they are CSV, TSV or JSON-lines files, `texts` and `label` names of their columns. For tagging they have
    a word a line, `word` and `label` the columns by number or name, `scheme` how entities are marked (iob1, bio or
    bioes; the labels tell it by themselves). For `qa` they are in SQuAD's format, scored by `words` or `characters`.
    """

    folder: str | None = None
    train: str | None = None
    dev: str | None = None
    test: str | None = None
    texts: list[str] = field(default_factory=lambda: ["text"])
    label: str | None = None
    word: str | None = None
    scheme: str | None = None
    scoring: str = "words"
    kind: str = SINGLE_LABEL
    separator: str = ","
    format: str | None = None
    columns: list[str] = field(default_factory=list)
    dev_share: float = 0.1

    def __post_init__(self):
        require(self.kind in PROBLEM_TYPES, "kind", f"one of {', '.join(PROBLEM_TYPES)}", self.kind)


@dataclass
class InputConfig:
    """From texts to rows of at most `max_length` tokens, special tokens included.

    `long` says what becomes of longer texts: `truncate` keeps their beginning; `head_tail` a quarter from the beginning
    and the rest from the end (Sun et al. 2019, section 5.3.1); `windows` makes several rows of them, `stride` tokens
    apart (0: half a window), whose outputs are averaged. Passages of question answering and sentences of tagging always
    go by windows, those of passages 128 apart (0); a question keeps `max_question_length` pieces.
    """

    max_length: int = 128
    long: str = TRUNCATE
    stride: int = 0
    max_question_length: int = 64

    def __post_init__(self):
        require(self.max_length >= 8, "max_length", "at least 8", self.max_length)
        require(self.long in LONG, "long", f"one of {', '.join(LONG)}", self.long)
        require(self.stride >= 0, "stride", "0 or more", self.stride)


@dataclass
class FinetuneOptimizerConfig(OptimizerConfig):
    """Warm-up is `warmup_steps`, or, where that is 0, `warmup_share` of all steps, or by the clock of all the time."""

    learning_rate: float = 3e-5
    warmup_steps: int = 0
    warmup_share: float = 0.1

    def __post_init__(self):
        super().__post_init__()
        require(0.0 <= self.warmup_share < 1.0, "warmup_share", "a share from 0 to below 1", self.warmup_share)


@dataclass
class FinetuneTrainingConfig(RunConfig):
    """How long: `epochs`, or `steps` or `minutes` where they are above 0. Validation is at the end of every epoch.

    `evaluate_every` above 0 validates every so many steps instead. The epoch with the best main metric is what remains
    of a run; after `patience` validations in a row without a better one it ends early (0: never). `freeze` trains the
    head alone. A label counts in the loss by `class_weights` (1 where it is not named), or, with `balance_classes`, by
    how rare it is: n / (labels x its count).
    """

    epochs: float = 3.0
    steps: int = 0
    batch_size: int = 32
    evaluate_every: int = 0
    patience: int = 0
    freeze: bool = False
    class_weights: dict = field(default_factory=dict)
    balance_classes: bool = False
    log_every: int = 50
    keep_checkpoints: int = 1

    def __post_init__(self):
        super().__post_init__()
        require_positive(self, "epochs", "batch_size")
        for key in ("steps", "evaluate_every", "patience"):
            require(getattr(self, key) >= 0, key, "0 or more", getattr(self, key))
        require_multiple(self, "steps_per_loop", "steps", "evaluate_every")
        for label, weight in self.class_weights.items():
            is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
            require(is_number and weight >= 0, f"class_weights.{label}", "a number of 0 or more", weight)


@dataclass
class FinetuneConfig:
    """One fine-tuning experiment, whole.

    `init` is the model to begin from; with `from_scratch` only its architecture and vocabulary are taken, and the
    weights are random.
    """

    task: str
    name: str = "finetune"
    init: str | None = None
    lower_case: bool | None = None
    from_scratch: bool = False
    data: TaskDataConfig = field(default_factory=TaskDataConfig)
    input: InputConfig = field(default_factory=InputConfig)
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    optimizer: FinetuneOptimizerConfig = field(default_factory=FinetuneOptimizerConfig)
    training: FinetuneTrainingConfig = field(default_factory=FinetuneTrainingConfig)

    def __post_init__(self):
        fits = self.features.kind is None or self.task in TAGGING_TASKS
        require(fits, "features", f"a task of tagging ({', '.join(TAGGING_TASKS)})", self.task)

    @classmethod
    def from_file(cls, path, overrides=None):
        """Reads a recipe; `overrides` (`{"section.key": value}`) win over it. Raises `UserError`."""
        values = settings.read_yaml(path)
        values.setdefault("name", os.path.splitext(os.path.basename(os.fspath(path)))[0])
        values.setdefault("task", values["name"])
        return cls.from_mapping(values, overrides)

    @classmethod
    def from_mapping(cls, values, overrides=None):
        return settings.from_mapping(cls, settings.apply_overrides(cls, values, overrides or {}))
