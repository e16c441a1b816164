"""What a task on whole texts is, as data alone: where its examples stand, how they are judged, what is written out."""

import dataclasses
from dataclasses import dataclass, field

from keras_bert.config.checks import require
from keras_bert.config.heads import METRIC_NAMES, PROBLEM_TYPES, REGRESSION
from keras_bert.tasks.examples.tables import FORMATS

# The split that a user's own file is which is to be answered, in place of all the task's.
INPUT = "input"
# A table of what is taken for what has the square of so many cells; of more nobody reads it, or has room for it.
MOST_CONFUSED = 500


@dataclass(frozen=True)
class Split:
    """Where the examples of one split stand.

    Attributes:
        files: names below the task's folder, tried in turn; a name with .gz, .bz2 or .xz behind it serves too.
        columns: the columns' names where these files have no header.
        labelled: True where every row must have its label, False where none is read (GLUE hides those of its test
            sets), None where the label is read if the file has its column.
        index: the column with the examples' numbers that a submission must give; rows are numbered from 0 if None.
        tfds: TFDS's name of the split.
        side: "train" or "dev" where both are parts of the same file, parted by the hash of the texts.
        submission: the name of the file with the predictions, as the benchmark wants it.
    """

    files: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    labelled: bool | None = True
    index: str | None = None
    tfds: str | None = None
    side: str | None = None
    submission: str | None = None

    def __post_init__(self):
        require(self.side in (None, "train", "dev"), "side", "train or dev", self.side)


@dataclass(frozen=True)
class TfdsFields:
    """The data set's name in TFDS and its features; `texts` None where they are named as the files' columns."""

    name: str
    texts: tuple[str, ...] | None = None
    label: str = "label"
    index: str = "idx"


@dataclass(frozen=True)
class PublishedScore:
    """A score to compare with, in per cent: whose, by which metric, on which split."""

    system: str
    metric: str
    value: float
    split: str = "test"


class NamedSplits:
    """What has `splits`, with names that begin with "train", "dev" or "test"."""

    @property
    def dev_splits(self):
        """Names of the splits to evaluate on, the main one first."""
        return tuple(name for name in self.splits if name.startswith("dev"))


@dataclass(frozen=True)
class Task(NamedSplits):
    """A classification of, or a score for, one text or a pair: everything that tells it from another task.

    Attributes:
        name: as in `--task NAME`.
        kind: one of `config.heads.PROBLEM_TYPES`.
        texts: the columns with the text, or with the two texts of a pair.
        label: the column with the label; None where no split has one.
        splits: name to `Split`. Names begin with "train", "dev" or "test".
        metrics: the main metric first, which is the one that the BERT paper reports; of `METRIC_NAMES`.
            Of two labels "f1" is that of the second.
        labels: the labels' names; a label's place is its id. None for a regression, and where the labels are those
            found in the training split (see `examples.with_labels`).
        written: the labels as files and submissions have them, in the order of `labels`; None if by their names.
        folders: names of the task's folder inside its benchmark's.
        format: the files' format, of `tasks.examples.tables.FORMATS`; judged by their names if None.
        skip_ragged: whether rows with too few or too many cells are left out, and counted, rather than refused.
        tfds: the same examples in TFDS.
        separator: what stands between the labels in a cell, for multi-label tasks; a JSON list serves too.
        score_range: the lowest and the highest score, for regressions; predictions are clipped to it.
        dev_share: share of the dev side where `Split.side` parts one file.
        trained_by: the task whose model predicts this one, which has no training split.
        published: scores of others.
    """

    name: str
    kind: str
    texts: tuple[str, ...]
    label: str | None
    splits: dict[str, Split]
    metrics: tuple[str, ...]
    labels: tuple[str, ...] | None = None
    written: tuple[str, ...] | None = None
    folders: tuple[str, ...] = ()
    format: str | None = None
    skip_ragged: bool = False
    tfds: TfdsFields | None = None
    separator: str = ","
    score_range: tuple[float, float] | None = None
    dev_share: float = 0.1
    trained_by: str | None = None
    published: tuple[PublishedScore, ...] = field(default=(), repr=False)

    def __post_init__(self):
        require(self.kind in PROBLEM_TYPES, "kind", f"one of {', '.join(PROBLEM_TYPES)}", self.kind)
        require(len(self.texts) in (1, 2), "texts", "one or two columns", self.texts)
        require(self.format in (None, *FORMATS), "format", f"one of {', '.join(FORMATS)}", self.format)
        require(self.kind != REGRESSION or self.labels is None, "labels", "none for a regression", self.labels)
        require(self.metrics, "metrics", "one metric or more", self.metrics)
        known = METRIC_NAMES[self.kind]
        for metric in self.metrics:
            require(metric in known, "metrics", f"some of {', '.join(known)}", metric)
        if self.written is not None:
            require(len(self.written) == len(self.labels or ()), "written", "one word for each label", self.written)

    @property
    def main_metric(self):
        return self.metrics[0]

    @property
    def num_labels(self):
        """Outputs of the head: the number of labels, 1 for a regression, None while the labels are not found."""
        if self.kind == REGRESSION:
            return 1
        return None if self.labels is None else len(self.labels)


def with_own_files(task, own, columns=None):
    """The task with the splits `{name: path}` for its own; labels are needed only to train and to validate.

    Args:
        columns: the columns' names where the files have no header.
    """
    needed = {"train": True, "dev": True}
    splits = {name: Split((path,), columns, labelled=needed.get(name)) for name, path in own.items()}
    # Without the task's folders, in which files of the same names may stand.
    return dataclasses.replace(task, splits=splits, folders=())
