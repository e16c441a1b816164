"""Opens the examples of a split: files in a benchmark's folder, the user's own files, or TensorFlow Datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keras_bert import files
from keras_bert.config.heads import SINGLE_LABEL
from keras_bert.data.tables.rows import Reading, Row
from keras_bert.data.tables.tables import open_table
from keras_bert.errors import UserError
from keras_bert.tasks.examples.labels import BadCell
from keras_bert.tasks.examples.split_files import needs_files, split_file
from keras_bert.tasks.task import Split, Task

if TYPE_CHECKING:
    from keras_bert.data.tables.tfds_table import TfdsTable


@dataclass(frozen=True)
class TfdsSource:
    """TensorFlow Datasets as the source.

    Attributes:
        data_dir: the folder in which TFDS keeps its data sets, or the folder that the task's was prepared in; None for
            TFDS's default folder.
        download: whether a data set that is not prepared there may be downloaded.
        own_files: names of the task's own files, to give instead.
    """

    data_dir: str | None = None
    download: bool = False
    own_files: tuple[str, ...] = ()

    def table(self, name: str) -> TfdsTable:
        """The data set `DATASET/CONFIG`. Raises `MissingData`; see `open_task_table`."""
        from keras_bert.data.tables.tfds_table import open_task_table  # Imports TensorFlow.

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
        ragged: where the rows skipped so far are, which have too few or too many cells.
    """

    rows: Iterable[Row]
    origin: str
    has_labels: bool
    index: Callable[[int, Row], int]
    label_words: tuple[str, ...] | None = None
    ragged: list[str] = field(default_factory=list)


def open_split(task: Task, split: str, source: Source = "") -> SplitTable:
    """The `SplitTable` of one split. Raises `UserError`."""
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
        words = task.labels  # TFDS names the labels correctly, but their ids are ours.
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
        return int(cell)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise BadCell(f"needs a whole number in the column {column!r}. Received: {cell!r}") from None


def data_source(tfds_name: str | None, folder: str | None, splits: Iterable[Split]) -> Source:
    """The source of a benchmark's examples: its files in a folder, or the data set that TFDS prepared there.

    Without a folder it is TFDS's default folder, and a missing data set is downloaded.
    """
    if not folder:
        return TfdsSource(download=True, own_files=tuple(dict.fromkeys(split.files[0] for split in splits)))
    if tfds_name and any(map(files.exists, (files.join(folder, "dataset_info.json"), files.join(folder, tfds_name)))):
        return TfdsSource(folder)
    return folder
