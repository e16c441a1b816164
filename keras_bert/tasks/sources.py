"""Opens the examples of a split: files in a benchmark's folder, the user's own files, or TensorFlow Datasets."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keras_bert.config.finetuning import SINGLE_LABEL
from keras_bert.core import files
from keras_bert.core.errors import MissingData, UserError
from keras_bert.data.corpus.text_lines import COMPRESSED
from keras_bert.data.tables.rows import Reading, Row
from keras_bert.data.tables.tables import is_data_set, open_table
from keras_bert.tasks.labels import BadCell
from keras_bert.tasks.task import Split, Task

if TYPE_CHECKING:
    from keras_bert.data.tables.tfds import TfdsTable
    from keras_bert.tasks.multiple_choice.task import ChoiceTask
    from keras_bert.tasks.question_answering.task import SpanTask
    from keras_bert.tasks.tagging.task import TaggingTask

_SHOWN = 20


def split_file(task: Task | SpanTask, split: str, folder: str = "") -> str:
    """The file of a split: in the task's own folder below `folder`, or else in `folder` itself.

    Without a folder, it is the `own_file` of the split.

    Raises `MissingData`, naming the files that the folder does hold, if there is none.
    """
    names = task.splits[split].files
    if not folder:
        return own_file(names[0], split, task.name)
    homes = [files.join(folder, home) for home in task.folders] + [os.fspath(folder)]
    for home in homes:
        for name in names:
            if found := _as_stored(files.join(home, name)):
                return found
    needed = " or ".join(files.join(home, name) for home in (*task.folders[:1], "") for name in names[:1])
    raise MissingData(
        f"{folder}: needs {needed}, for the split {split!r} of {task.name}. Received: "
        f"{_contents(folder, task.folders)}. Give the folder or the file that holds it."
    )


def own_file(path: str, split: str, task_name: str) -> str:
    """The file that a user gives for a split, or its compressed form; anything else that `read_table` takes as it is.

    Raises `MissingData`, naming the files that its folder does hold, if there is none.
    """
    if is_data_set(path) or glob.has_magic(path) and not files.exists(path):
        return path
    if found := _as_stored(path):
        return found
    raise MissingData(
        f"{path}: needs to exist, for the split {split!r} of {task_name}. Received: "
        f"{_contents(files.parent(path), ())}. Give the file that holds it."
    )


def _as_stored(path: str) -> str | None:
    """The path, or that of its compressed form, whichever exists."""
    return next(filter(files.exists, (path + ending for ending in ("", *COMPRESSED))), None)


def find_split_files(task: TaggingTask | ChoiceTask, folder: str | None) -> dict[str, str]:
    """`{split: path}` of the files in a folder that match the names in `Split.files`, compressed or not.

    These are the names that the file of a split may have, the likeliest first; * matches anything.

    Raises:
        MissingData: no folder is given, or no file matches.
        UserError: several files match for one split.
    """
    if not folder:
        raise needs_files(task.name, (split.files[0] for split in task.splits.values()))
    held = files.list_folder(folder)
    found = {}
    for name, split in task.splits.items():
        matches = (
            [file for file in held for ending in ("", *COMPRESSED) if fnmatch.fnmatchcase(file, pattern + ending)]
            for pattern in split.files
        )
        chosen = list(dict.fromkeys(next(filter(None, matches), [])))
        if len(chosen) > 1:
            raise UserError(
                f"{folder}: needs one file for {name}. Received: {', '.join(chosen)}. Name the one to "
                "use with --train, --dev or --test."
            )
        if chosen:
            found[name] = files.join(folder, chosen[0])
    if not found:
        needed = " or ".join(split.files[0] for split in task.splits.values())
        raise MissingData(f"{folder}: needs {needed}, for {task.name}. Received: {_contents(folder, ())}.")
    return found


def needs_files(task_name: str, names: Iterable[str]) -> MissingData:
    """The error for a task that can only read files of these names, when none are given."""
    listed = ", ".join(dict.fromkeys(names))
    return MissingData(
        f"{task_name}: needs its files ({listed}). Received: none. Give --data-dir FOLDER, or --train and --dev."
    )


def none_held_out(origin: str, share: float, side: str) -> UserError:
    """The error for a file of which no row is on this side, "train" or "dev", when a share is held out."""
    return UserError(
        f"{origin}: needs enough rows to hold out a share of {share} for evaluation. Received: none for the {side} "
        "part. Give a file with dev examples, or more rows."
    )


def task_folder(folder: str, names: Iterable[str]) -> str:
    """The first of these subfolders that a benchmark's folder has, or else that folder itself."""
    homes = (files.join(folder, name) for name in names)
    return next(filter(files.is_folder, homes), folder)


def _contents(folder: str, subfolders: Iterable[str]) -> str:
    """The names in a folder and in these subfolders of it, in words."""
    if not files.is_folder(folder):
        return "no such folder"
    names = [
        files.join(home, name)
        for home in (*subfolders, "")
        if files.is_folder(files.join(folder, home))
        for name in files.list_folder(files.join(folder, home))
        if name not in subfolders
    ]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"a folder with {', '.join(names[:_SHOWN]) or 'nothing in it'}{more}"


def file_of(task_name: str, paths: Mapping[str, str], split: str) -> str:
    """The path of a split. Raises `MissingData` if the split has no file."""
    if split not in paths:
        raise MissingData(f"{task_name}: needs a file for the split {split!r}. Received: {', '.join(paths) or 'none'}.")
    return paths[split]


@dataclass(frozen=True)
class TfdsSource:
    """TensorFlow Datasets as the source of examples.

    Attributes:
        data_dir: the folder of TFDS's data sets, or the one that the task's data set was prepared in; None for TFDS's
            default folder.
        download: whether a data set that is not prepared there may be downloaded.
        own_files: names of the task's own files, which messages propose instead.
    """

    data_dir: str | None = None
    download: bool = False
    own_files: tuple[str, ...] = ()

    def table(self, name: str) -> TfdsTable:
        """The data set `DATASET/CONFIG`. Raises `MissingData`; see `open_task_table`."""
        from keras_bert.data.tables.tfds import open_task_table  # Imports TensorFlow.

        return open_task_table(name, self.data_dir, self.download, self.own_files)


# Where the examples of a task are: the folder with the task's files, or one that contains that folder; "" if the task
# names its files in full; or TensorFlow Datasets.
Source = str | TfdsSource


@dataclass(frozen=True)
class SplitTable:
    """The rows of a split, not yet checked.

    Attributes:
        rows: rows whose first cells are the texts and, if `has_labels`, whose last one is the label.
        origin: the file or data set, for messages.
        has_labels: whether rows have a cell for the label.
        index: function (position, row) -> the number of the example in a submission; raises `BadCell`.
        label_words: the source's own words for the labels, in the order of `Task.labels`; None if it has none.
        ragged: the places of the rows skipped so far for having too few or too many cells.
    """

    rows: Iterable[Row]
    origin: str
    has_labels: bool
    index: Callable[[int, Row], int]
    label_words: tuple[str, ...] | None = None
    ragged: list[str] = field(default_factory=list)


def open_split(task: Task, split: str, source: Source = "") -> SplitTable:
    """The `SplitTable` of one split. Raises `UserError`."""
    if not task.splits:
        raise MissingData(f"{task.name}: needs files. Received: none. Give --train and --dev.")
    if split not in task.splits:
        raise UserError(f"{task.name}: needs one of its splits {', '.join(task.splits)}. Received: {split!r}.")
    if isinstance(source, TfdsSource):
        return _tfds_table(task, task.splits[split], source)
    return _file_table(task, split, source)


def _file_table(task: Task, name: str, folder: str) -> SplitTable:
    split = task.splits[name]
    table = open_table(split_file(task, name, folder))
    label = () if task.label is None else (task.label,)
    ragged: list[str] = []
    where = (split.where[0],) if split.where else ()
    wanted = (*where, *task.texts, *((split.index,) if split.index else ()), *(label if split.labelled else ()))
    reading = Reading(
        tuple(split.renamed.get(column, column) for column in wanted),
        label if split.labelled is None else (),
        task.format,
        split.columns,
        task.options,
        (lambda _, place: ragged.append(place)) if task.skip_ragged else None,
    )
    rows = table.rows(reading)
    if split.where:
        value = split.where[1]
        rows = (row._replace(cells=row.cells[1:]) for row in rows if row.cells[0] == value)
    return SplitTable(
        rows=rows,
        origin=table.name,
        has_labels=split.labelled is not False and task.label is not None,
        index=lambda position, row: _index(split.index, row.cells[len(task.texts)]) if split.index else position,
        ragged=ragged,
    )


def _tfds_table(task: Task, split: Split, source: TfdsSource) -> SplitTable:
    if task.tfds is None or split.tfds is None:
        raise needs_files(task.name, (split.files[0] for split in task.splits.values()))
    table = source.table(task.tfds.name)
    words = table.label_names(task.tfds.label)
    if words and task.labels and task.kind == SINGLE_LABEL:
        if set(words) != set(task.labels):
            raise UserError(
                f"{table.name}: needs the labels {', '.join(task.labels)}. Received: {', '.join(words)}. "
                f"Give the data of {task.name}."
            )
        words = task.labels  # TFDS has the right names, but the ids follow our order.
    has_labels = split.labelled is not False
    wanted = [*(task.tfds.texts or task.texts), *([task.tfds.label] if has_labels else [])]
    origin = f"{table.name} {split.tfds}"
    return SplitTable(
        rows=table.examples(split.tfds, wanted, task.tfds.index),
        origin=origin,
        has_labels=has_labels,
        index=lambda position, row: row.line,
        label_words=words,
    )


def _index(column: str, cell: object) -> int:
    try:
        if isinstance(cell, float) and not cell.is_integer():
            raise ValueError
        return int(cell)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise BadCell(f"needs a whole number in the column {column!r}. Received: {cell!r}") from None


def data_source(tfds_name: str | None, folder: str | None, splits: Iterable[Split]) -> Source:
    """The source of a benchmark's examples: its files in a folder, or the data set that TFDS prepared there.

    Without a folder, TFDS's default folder is used, and a missing data set is downloaded.
    """
    if not folder:
        return TfdsSource(download=True, own_files=tuple(dict.fromkeys(split.files[0] for split in splits)))
    if tfds_name and any(map(files.exists, (files.join(folder, "dataset_info.json"), files.join(folder, tfds_name)))):
        return TfdsSource(folder)
    return folder
