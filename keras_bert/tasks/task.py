"""A task on whole texts, as data: where its examples are, how it is scored, and what a submission looks like."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from keras_bert.config.corpus import TABLE_FORMATS
from keras_bert.config.finetuning import PROBLEM_TYPES, REGRESSION, ProblemType, TaskDataConfig
from keras_bert.core.settings import require

# The split that holds a user's file to answer, instead of all the task's splits.
INPUT = "input"
# No confusion matrix beyond this many labels: nobody reads it, and its memory grows with their square.
MOST_CONFUSED = 500

_AnyTask = TypeVar("_AnyTask", bound=Any)
_Example = TypeVar("_Example")


@dataclass(frozen=True)
class Window(Generic[_Example]):
    """Some of a split's examples, and the file or data set that they are from, for messages."""

    examples: Sequence[_Example]
    origin: str

    def __len__(self) -> int:
        return len(self.examples)


@dataclass(frozen=True)
class Split:
    """Where the examples of one split are.

    Attributes:
        files: names below the task's folder, tried in turn, each also with .gz, .bz2, .xz or .zst appended.
        columns: the names of the columns, if these files have no header.
        labelled: True if every row must have a label; False if labels are not read (GLUE hides those of its test
            sets); None to read the label if the file has its column.
        index: the column with the numbers of the examples in a submission; None to number the rows from 0.
        tfds: the name of the split in TFDS.
        renamed: `{the task's column: these files' column}`, where the names differ.
        where: (column, value): only rows with this value in this column belong to the split.
        side: "train" or "dev" if both come from one file, split by the hash of the texts.
        submission: the name of the file with the predictions that the benchmark expects.
    """

    files: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    labelled: bool | None = True
    index: str | None = None
    tfds: str | None = None
    side: str | None = None
    submission: str | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)
    where: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        require(self.side in (None, "train", "dev"), "side", "train or dev", self.side)


@dataclass(frozen=True)
class TfdsFields:
    """The data set's name in TFDS and its features; `texts` is None if they are named like the files' columns."""

    name: str
    texts: tuple[str, ...] | None = None
    label: str = "label"
    index: str = "idx"


@dataclass(frozen=True)
class PublishedScore:
    """A published score in per cent: of which system, by which metric, on which split."""

    system: str
    metric: str
    value: float
    split: str = "test"


@dataclass(frozen=True)
class Task:
    """A classification or regression of texts or pairs of texts: all that distinguishes it from other tasks.

    Attributes:
        name: as in `--task NAME`.
        kind: what a label is.
        texts: the column with the text, or the two columns with a pair; pairs to train on may have more, with hard
            negatives.
        label: the column with the label; None if no split has one.
        splits: `{name: Split}`. Names start with "train", "dev" or "test".
        metrics: of `classification.scores.METRICS`, if its problem has no scores of its own; the first is the main
            one, which the BERT paper reports. With two labels, "f1" is the second label's.
        labels: the names of the labels; a label's id is its index. None for a regression, and for labels to be found in
            the training split (see `with_labels`).
        written: the labels as files and submissions spell them, in the order of `labels`; None if by name.
        also_written: `{another word for a label in the files: the usual one}`.
        folders: names of the task's folder inside its benchmark's.
        format: the files' format, of `config.corpus.TABLE_FORMATS`; None goes by their names and contents.
        options: the command-line options that name the columns; "" if the task fixes them.
        skip_ragged: whether rows with too few or too many cells are skipped and counted, rather than refused.
        tfds: where TFDS has the same examples.
        separator: separates the labels in a cell, for multi-label tasks; a JSON list works too.
        label_range: the lowest and the highest label that files may have, for regressions; None for any.
        score_range: the lowest and the highest score, for regressions; submissions are clipped to it.
        dev_share: share of the dev side if `Split.side` divides one file.
        trained_by: the task whose model predicts this one, which has no training split.
        published: published scores.
    """

    name: str
    kind: ProblemType
    texts: tuple[str, ...]
    label: str | None
    splits: Mapping[str, Split]
    metrics: tuple[str, ...]
    labels: tuple[str, ...] | None = None
    written: tuple[str, ...] | None = None
    also_written: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    format: str | None = None
    options: str = ""
    skip_ragged: bool = False
    tfds: TfdsFields | None = None
    separator: str = ","
    label_range: tuple[float, float] | None = None
    score_range: tuple[float, float] | None = None
    dev_share: float = 0.1
    trained_by: str | None = None
    published: tuple[PublishedScore, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        require(self.kind in PROBLEM_TYPES, "kind", f"one of {', '.join(PROBLEM_TYPES)}", self.kind)
        require(self.texts, "texts", "one column or more", self.texts)
        require(self.format in (None, *TABLE_FORMATS), "format", f"one of {', '.join(TABLE_FORMATS)}", self.format)
        require(self.kind != REGRESSION or self.labels is None, "labels", "none for a regression", self.labels)
        require(self.metrics, "metrics", "at least one metric", self.metrics)
        if self.written is not None:
            require(len(self.written) == len(self.labels or ()), "written", "one word for each label", self.written)

    def side_key(self, texts: Sequence[str]) -> str:
        """The key that decides an example's side if `Split.side` divides one file; equal keys share a side."""
        return "\t".join(texts)


def own_splits(data: TaskDataConfig) -> dict[str, Split]:
    """The splits of a user's files; without a dev file, "train" and "dev" are the two sides of the training file."""
    columns, splits = tuple(data.columns) or None, {}
    if data.train:
        splits["train"] = Split((data.train,), columns, side=None if data.dev else "train")
    if validation := data.dev or data.train:
        splits["dev"] = Split((validation,), columns, side=None if data.dev else "dev")
    if data.test:
        splits["test"] = Split((data.test,), columns, labelled=None)
    return splits


def with_own_files(task: _AnyTask, own: Mapping[str, str], columns: tuple[str, ...] | None = None) -> _AnyTask:
    """The task with the user's files as its only splits; labels are needed only for training and validation.

    Args:
        task: a `Task`, a `SpanTask` or a `ChoiceTask`.
        own: `{split: path}`.
        columns: the names of the columns, if the files have no header.
    """
    needed = {"train": True, "dev": True}
    splits = {name: Split((path,), columns, labelled=needed.get(name)) for name, path in own.items()}
    # Without the task's folders, which may contain files of the same names.
    return dataclasses.replace(task, splits=splits, folders=())
