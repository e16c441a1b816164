"""The plans of studies, files in configs/studies: what to train, and with which settings."""

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import by_setting
from keras_bert.core import settings
from keras_bert.core.errors import UserError
from keras_bert.core.settings import Checked, Positive, require

_Plan = TypeVar("_Plan")

# The last two are folders of every study.
_NO_NAMES = ("", ".", "..", "parts", "snapshots")
# The settings that a study sets itself, in runs by each kind of recipe.
_OWN: dict[Any, tuple[str, ...]] = {
    PretrainConfig: ("data.files", "training.seed"),
    FinetuneConfig: (
        "data.folder",
        "from_scratch",
        "init",
        "optimizer.learning_rate",
        "training.keep_checkpoints",
        "training.seed",
    ),
}


def _changes(values: Any, where: str, cls: Any) -> dict[str, Any]:
    """Settings of a plan by their dotted keys, `{}` if its file has none after the key.

    Args:
        values: what the plan gives.
        where: its key, for messages.
        cls: the dataclass of the recipe that they change.

    Raises:
        ValueError: the values are no settings, or some are the study's own.
    """
    values = {} if values is None else values
    require(isinstance(values, dict), where, "settings as `key: value`", values)
    for name in _names(values):
        require(isinstance(name, str), where, "names that are text", name)
    for key, value in settings.flattened(values).items():
        is_free = not any(f"{key}.".startswith(f"{name}.") for name in _OWN[cls])
        require(is_free, f"{where}.{key}", "no value, because the study sets it", value)
    return by_setting(cls, values)


def _names(values: Mapping[Any, Any]) -> Iterator[Any]:
    """The keys of a mapping and of those nested in it."""
    for name, value in values.items():
        yield name
        if isinstance(value, dict):
            yield from _names(value)


@dataclasses.dataclass
class TaskPlan(Checked):
    """How a study fine-tunes on one task.

    Attributes:
        folder: folder of the task's files, below the study's `--data`.
        rates: learning rates to try; the one with the best median over the seeds counts.
        set: other settings of the task's recipe, `{"training.epochs": 3}`.
        task: name of the recipe; None if it is the task's name in the plan.
        seeds: how many seeds, from 1 on; None for the study's own number.
    """

    folder: str
    rates: list[Positive[float]]
    set: dict = dataclasses.field(default_factory=dict)
    task: str | None = None
    seeds: Positive[int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.set = _changes(self.set, "set", FinetuneConfig)
        if not self.rates:
            raise ValueError("rates: needs at least one learning rate. Received: none.")


@dataclasses.dataclass
class WorthTaskPlan(TaskPlan):
    """A task of `worth`, whose table may show more than the main metric.

    Attributes:
        metrics: metrics to show besides the task's main one.
    """

    metrics: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class PilotsPlan:
    """A pretraining recipe, and changes to it that are tried one at a time.

    Attributes:
        recipe: a name in configs/pretrain, or a file.
        pilots: `{name: {setting: value}}`.
        set: settings that all pilots have.
    """

    recipe: str
    pilots: dict
    set: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.set = _changes(self.set, "set", PretrainConfig)
        self.pilots = {name: _changes(pilot, f"pilots.{name}", PretrainConfig) for name, pilot in self.pilots.items()}


@dataclasses.dataclass
class VariantPlan:
    """One way to pretrain, to be compared with others.

    Attributes:
        set: its own settings of pretraining.
        recipe: its own recipe; None for the plan's.
        pretrained_as: another variant whose pretraining serves this one too; None for its own.
        finetuning: its own settings of fine-tuning, on every task.
        published: `{task and metric: score in per cent}` that a paper measured for such a model.
        source: the paper, and its table, of the published scores.
    """

    set: dict = dataclasses.field(default_factory=dict)
    recipe: str | None = None
    pretrained_as: str | None = None
    finetuning: dict = dataclasses.field(default_factory=dict)
    published: dict[str, float | None] = dataclasses.field(default_factory=dict)
    source: str = ""

    def __post_init__(self) -> None:
        self.set = _changes(self.set, "set", PretrainConfig)
        self.finetuning = _changes(self.finetuning, "finetuning", FinetuneConfig)
        if self.pretrained_as and (self.set or self.recipe):
            raise ValueError("pretrained_as: needs a variant without set and recipe of its own. Received: both.")


@dataclasses.dataclass
class AblationPlan(Checked):
    """Ways to pretrain on the same number of tokens, and the tasks that tell them apart.

    Attributes:
        recipe: a name in configs/pretrain, or a file.
        variants: `{name: a VariantPlan}`; the first is the base.
        tasks: `{task: a TaskPlan}`.
        set: settings of pretraining that all variants have.
    """

    recipe: str
    variants: dict[str, VariantPlan]
    tasks: dict[str, TaskPlan]
    set: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.set = _changes(self.set, "set", PretrainConfig)
        for name, variant in self.variants.items():
            other = variant.pretrained_as
            if other and (other not in self.variants or self.variants[other].pretrained_as):
                raise ValueError(
                    f"variants.{name}.pretrained_as: needs a variant that is pretrained. Received: {other}."
                )


@dataclasses.dataclass
class TaggedText(Checked):
    """The files of a tagging task.

    Attributes:
        task: `pos` (CoNLL-U) or `ner` (columns).
        folder: folder of the files, below `--data`.
    """

    task: Literal["pos", "ner"]
    folder: str


EMBRYOLOGY_PARTS = ("words", "probes", "tasks")  # What may be measured.


@dataclasses.dataclass
class EmbryologyPlan(Checked):
    """What is measured at each snapshot of a pretraining run.

    Attributes:
        treebank: the text whose dev split is predicted word by word.
        words_per_tag: how many words of each part of speech are masked.
        probes: `{name: a TaggedText}`, on whose training split a linear probe is fitted.
        probe_words: how many words a probe is fitted on, at most.
        tasks: `{task: a TaskPlan}`, to fine-tune on from each snapshot.
        published: `{part of speech: step}`: the step at which a paper's model reconstructed half of its words.
        source: the paper of the published steps.
    """

    treebank: TaggedText
    words_per_tag: Positive[int] = 300
    probes: dict[str, TaggedText] = dataclasses.field(default_factory=dict)
    probe_words: Positive[int] = 8000
    tasks: dict[str, TaskPlan] = dataclasses.field(default_factory=dict)
    published: dict[str, float] = dataclasses.field(default_factory=dict)
    source: str = ""


def task_plans(values: Mapping[str, Any]) -> dict[str, WorthTaskPlan]:
    """`{task: its plan}`, from a file's values. Raises `UserError` for unknown or missing settings."""
    return {task: settings.from_mapping(WorthTaskPlan, plan, task) for task, plan in values.items()}


def selected(plans: Mapping[str, _Plan], names: Collection[str], what: str, source: str) -> dict[str, _Plan]:
    """The plans with these names; all of them if there are no names.

    Args:
        plans: `{name: plan}`.
        names: the chosen names.
        what: what is named, such as "task", for the message.
        source: the file of the plans.

    Raises:
        UserError: a name is unknown or cannot name a folder, or the file has none.
    """
    if not plans:
        raise UserError(f"{source}: needs at least one {what}. Received: none.")
    require_names(plans, what, source)
    if unknown := [name for name in names if name not in plans]:
        raise UserError(f"{_listed(unknown)}: no such {what} in {source}. It has {_listed(plans)}.")
    return {name: plans[name] for name in names or plans}


def require_names(names: Iterable[Any], what: str, source: str) -> None:
    """Raises `UserError`, which begins with `source`, unless each `what`, such as a task, can name a folder."""
    for name in names:
        if not isinstance(name, str) or name in _NO_NAMES or set(name) & {"/", "\\"}:
            raise UserError(
                f"{source}: needs a name for every {what} that a folder of its own may have. Received: {name!r}."
            )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(str, names))
