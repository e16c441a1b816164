"""The examples of a task, from its benchmark's folder, the user's own files or TensorFlow Datasets."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION, SINGLE_LABEL, TaskDataConfig
from keras_bert.core.errors import UserError
from keras_bert.data.corpus.held_out import is_validation
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.labels import LabelReader, bad_cell_at, check_text, is_missing, label_words, sorted_labels
from keras_bert.tasks.sources import Source, none_held_out, open_split
from keras_bert.tasks.task import Task, own_splits


class ExampleRow(NamedTuple):
    """One example: its texts; its label as from `LabelReader.read`, None if hidden; its number in a submission."""

    texts: list[str]
    label: int | float | list[int] | None
    number: int


class ExampleRows:
    """Iterates over the examples of one split, in their file's order.

    Args:
        task: a task whose labels are known (`with_labels`).

    Attributes:
        origin: the file or data set, for messages.
        reader: reads the labels.

    Raises:
        UserError: with file and line number, also while iterating: no such split or file, a missing or wrong column, a
            malformed row, an unknown label, a label that is not a number, labels of only some rows, no examples.
    """

    def __init__(self, task: Task, split: str, source: Source = "", labels: bool = True):
        if task.labels is None and task.kind != REGRESSION:
            raise ValueError(f"{task.name}: needs its labels. Received: None. Call with_labels first.")
        if not labels and split in task.splits:
            task = replace(task, splits={split: replace(task.splits[split], labelled=False)})
        self._task, self._split = task, split
        self._table = open_split(task, split, source)
        self.origin, self.reader = self._table.origin, LabelReader(task, self._table.label_words)
        self._empty, self._first_empty = 0, ""

    def __iter__(self) -> Iterator[ExampleRow]:
        task, table, split = self._task, self._table, self._task.splits[self._split]
        count, labelled, unlabelled = 0, 0, None
        for position, row in enumerate(table.rows):
            with bad_cell_at(row.place):
                texts = [check_text(cell) for cell in row.cells[: len(task.texts)]]
                if split.side and is_validation(task.side_key(texts), task.dev_share) != (split.side == "dev"):
                    continue
                if not all(text.strip() for text in texts):
                    self._empty += 1
                    self._first_empty = self._first_empty or row.place
                label = None if not table.has_labels or is_missing(row.cells[-1]) else row.cells[-1]
                if label is not None or table.has_labels and split.labelled is not None:
                    label = self.reader.read(label)
                    labelled += 1
                elif table.has_labels:
                    unlabelled = unlabelled or row.place
                index = table.index(position, row)
            if unlabelled is not None and labelled:
                raise UserError(f"{unlabelled}: needs a label, as other rows have. Received: none.")
            count += 1
            yield ExampleRow(texts, label, index)
        if not count and split.side:
            raise none_held_out(table.origin, task.dev_share, split.side)
        if not count:
            raise UserError(f"{table.origin}: needs at least one example. Received: no row.")

    def warnings(self) -> Iterator[str]:
        """Yields a line for each kind of row that was skipped or looks odd so far."""
        table, ragged = self._table, self._table.ragged
        for count, first, what in (
            (len(ragged), ragged[0] if ragged else "", "skipped rows with too few or too many cells"),
            (self._empty, self._first_empty, "empty texts"),
        ):
            if count:
                yield f"{table.origin}: {what}: {count:,} (the first: {first})"


def with_labels(task: Task, source: Source = "") -> Task:
    """The task with its labels; if it names none, they are the `sorted_labels` found in the training data.

    Raises `UserError` as `ExampleRows` does, and if the training file has too few labels to choose from.
    """
    if task.labels is not None or task.kind == REGRESSION:
        return task
    table = open_split(task, "train", source)
    words = set(table.label_words or ())
    for row in table.rows if not words else ():
        with bad_cell_at(row.place):
            words.update(label_words(task, row.cells[-1]))
    needed, labels = 2 if task.kind == SINGLE_LABEL else 1, sorted_labels(words)
    if len(labels) < needed:
        found = ", ".join(map(repr, labels)) or "none"
        raise UserError(
            f"{table.origin}: needs {needed} labels or more in its column {task.label!r}. Received: {found}. "
            "Give training data with every label."
        )
    return replace(task, labels=labels)


_METRICS = {
    SINGLE_LABEL: ("accuracy", "macro_f1"),
    MULTI_LABEL: ("micro_f1", "macro_f1"),
    REGRESSION: ("pearson", "spearman"),
}


def own_table(data: TaskDataConfig, head: ClassificationConfig | None) -> Task:
    """The task of a user's tables, with the labels of a trained model's head, if there is one.

    Without a dev file, a share of the training file is held out by the hash of each row's texts: the file's order does
    not matter, and equal texts are on the same side. A test file needs no labels. Files may write unnamed labels
    (LABEL_0 and so on) as their numbers.

    Raises:
        UserError: a setting or the training file is invalid; see `with_labels`.
    """
    texts, label = data.texts, data.label or "label"
    kind = head.problem_type if head else data.kind
    labels = head.labels if head and kind != REGRESSION else None
    if len(texts) not in (1, 2) or len(set(texts)) != len(texts):
        raise UserError(
            f"data.texts (--text): needs the names of one or two columns. Received: {', '.join(texts) or 'none'}."
        )
    if label in texts:
        raise UserError(f"data.label (--label): needs another column than the text. Received: {label!r} for both.")
    if not (data.train or labels or kind == REGRESSION):
        raise UserError(
            "data.train: needs a training file, in which the labels are found. Received: none. Give --train."
        )
    if kind == MULTI_LABEL and not data.separator:
        raise UserError("data.separator: needs at least one character. Received: none.")
    task = Task(
        name="text",
        kind=kind,
        texts=tuple(texts),
        label=label,
        splits=own_splits(data),
        metrics=_METRICS[kind],
        labels=labels,
        format=data.format,
        options="--text and --label",
        separator=data.separator,
        dev_share=data.dev_share,
    )
    task = with_labels(task)
    unnamed = {str(index): label for index, label in enumerate(task.labels or ())}
    return replace(task, also_written=unnamed) if head and head.is_unnamed else task


def require_columns(task: Task, task_record: Mapping[str, Any]) -> None:
    """Raises `UserError` if a trained model was trained on pairs and a task has single texts, or the reverse.

    Args:
        task_record: what the model's config.json says about its task; models of other libraries do not say.
    """
    of_pairs = len(task.texts) == 2
    if task_record.get("pair", of_pairs) != of_pairs:
        needed, received = ("single texts", "pairs of texts") if of_pairs else ("pairs of texts", "single texts")
        columns = ", ".join(map(str, task.texts))
        way = f"{'one column' if of_pairs else 'two columns'} with --text" if task.options else "another --task"
        raise UserError(f"{task.name}: needs {needed}, as in training. Received: {received}, {columns}. Give {way}.")
