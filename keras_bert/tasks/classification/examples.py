"""The examples of a task, out of its benchmark's folder, the user's own files or TensorFlow Datasets."""

from dataclasses import dataclass, replace

import numpy as np

from keras_bert.config.classification import REGRESSION, SINGLE_LABEL
from keras_bert.data.held_out import is_validation
from keras_bert.errors import UserError
from keras_bert.tasks.labels import BadCell, LabelReader, check_text, label_words, sorted_labels
from keras_bert.tasks.sources import open_split


@dataclass(frozen=True, eq=False)
class Examples:
    """The examples of one split, n of them, in their file's order.

    Attributes:
        texts: one or two lists of n strings, as the task has texts.
        labels: int32 `[n]` (ids), float32 `[n]` (regression), float32 `[n, labels]` of 0 and 1 (multi-label), or None
            where they are hidden.
        indices: int64 `[n]`: the numbers by which a submission names the examples.
        label_names: the name of each id; None for a regression.
        origin: the file or data set, for messages.
        warnings: what was left out or looks odd, one line each.
    """

    texts: list[list[str]]
    labels: np.ndarray | None
    indices: np.ndarray
    label_names: tuple[str, ...] | None
    origin: str
    warnings: tuple[str, ...] = ()

    def __len__(self):
        return len(self.texts[0])


def load_examples(task, split, source="", needs_labels=False):
    """The `Examples` of one split.

    Args:
        task: a `Task` whose labels are known (`with_labels`).
        split: a name in `task.splits`.
        source: the folder with the task's files, or one that holds that folder; "" where the task names its files
            in full; or a `sources.TfdsSource`.
        needs_labels: whether hidden labels are refused: for evaluation.

    Raises:
        UserError: in one line, with file and line number: no such split or file, a missing or wrong column, a broken
            row, an unknown label, a label that is not a number, no example, hidden labels that are needed.
    """
    if task.labels is None and task.kind != REGRESSION:
        raise ValueError(f"{task.name}: needs its labels. Received: None. Call with_labels first.")
    table = open_split(task, split, source)
    side = task.splits[split].side
    reader = LabelReader(task, table.label_words)
    texts, labels, indices, empty = [], [], [], []
    unlabelled = None
    for position, row in enumerate(table.rows):
        try:
            row_texts = [check_text(cell) for cell in row.cells[: len(task.texts)]]
            if side and is_validation("\t".join(row_texts), task.dev_share) != (side == "dev"):
                continue
            if not all(text.strip() for text in row_texts):
                empty.append(row.line)
            if table.has_labels:
                value = row.cells[-1]
                if value is None and task.splits[split].labelled is None:
                    unlabelled = unlabelled or row.line
                else:
                    labels.append(reader.read(value))
            indices.append(table.index(position, row))
        except BadCell as problem:
            raise UserError(f"{table.place(row.line)}: {problem}.") from None
        texts.append(row_texts)
    if not texts:
        raise UserError(_no_examples(table.origin, task, side))
    if unlabelled is not None and labels:
        raise UserError(f"{table.place(unlabelled)}: needs a label, as other rows have. Received: none.")
    if needs_labels and not labels:
        others = f" Evaluate on {', '.join(task.dev_splits)}, or write predictions." if task.dev_splits else ""
        raise UserError(f"{table.origin}: needs labels to evaluate on. Received: the split {split!r}, without.{others}")
    return Examples(
        texts=[list(column) for column in zip(*texts)],
        labels=reader.array(labels) if labels else None,
        indices=np.asarray(indices, np.int64),
        label_names=task.labels,
        origin=table.origin,
        warnings=tuple(_warnings(table, empty)),
    )


def with_labels(task, source=""):
    """The task with its labels, which are those in the training data, sorted, where it names none.

    Raises `UserError` as `load_examples` does, and for a training file with fewer labels than there is a choice of.
    """
    if task.labels is not None or task.kind == REGRESSION:
        return task
    table = open_split(task, "train", source)
    words = set(table.label_words or ())
    for row in table.rows if not words else ():
        try:
            words.update(label_words(task, row.cells[-1]))
        except BadCell as problem:
            raise UserError(f"{table.place(row.line)}: {problem}.") from None
    needed = 2 if task.kind == SINGLE_LABEL else 1
    if len(words) < needed:
        found = ", ".join(map(repr, words)) or "none"
        raise UserError(
            f"{table.origin}: needs {needed} labels or more in its column {task.label!r}. Received: {found}. "
            "Give training data with every label."
        )
    return replace(task, labels=sorted_labels(words))


def _no_examples(origin, task, side):
    if side:
        return (
            f"{origin}: needs rows enough to hold a share of {task.dev_share} out for evaluation. Received: none for "
            f"the {side} part. Give a file with dev examples, or more rows."
        )
    return f"{origin}: needs one example or more. Received: no row."


def _warnings(table, empty):
    for lines, what in ((table.ragged, "rows with too few or too many cells, left out"), (empty, "empty texts")):
        if lines:
            yield f"{table.origin}: {what}: {len(lines):,} (the first: {table.place(lines[0])})"
