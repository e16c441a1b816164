"""Where the examples of a split stand: files in a benchmark's folder, the user's own, or TensorFlow Datasets."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from keras_bert import files
from keras_bert.config.heads import SINGLE_LABEL
from keras_bert.errors import UserError
from keras_bert.tasks.examples.labels import BadCell
from keras_bert.tasks.examples.split_files import split_file
from keras_bert.tasks.examples.tables import Row, read_table


@dataclass(frozen=True)
class TfdsSource:
    """TensorFlow Datasets as the source.

    Attributes:
        data_dir: the folder in which TFDS keeps its data sets, or the very folder that the task's was prepared in;
            TFDS's own folder if None.
        download: whether a data set that is not prepared there may be fetched.
    """

    data_dir: str | None = None
    download: bool = False


@dataclass(frozen=True)
class SplitTable:
    """The rows of a split, not yet judged.

    Attributes:
        rows: rows whose first cells are the texts and, if `has_labels`, whose last is the label.
        origin: the file or data set, for messages.
        has_labels: whether there is a cell for the label.
        place: a row's `line` in words, for messages.
        index: (position, row) to the number by which a submission names the example; raises `BadCell`.
        label_words: the labels' words in the order of `Task.labels`, where the source has its own.
        ragged: lines of rows with too few or too many cells, left out so far.
    """

    rows: Iterable[Row]
    origin: str
    has_labels: bool
    place: Callable[[int], str]
    index: Callable[[int, Row], int]
    label_words: tuple[str, ...] | None = None
    ragged: list[int] = field(default_factory=list)


def open_split(task, split, source=""):
    """The `SplitTable` of one split; the arguments are `load_examples`'s. Raises `UserError`."""
    if split not in task.splits:
        raise UserError(f"{task.name}: needs one of its splits {', '.join(task.splits)}. Received: {split!r}.")
    if isinstance(source, TfdsSource):
        return _tfds_table(task, task.splits[split], source)
    return _file_table(task, split, source)


def _file_table(task, name, folder):
    split = task.splits[name]
    path = split_file(task, name, folder)
    ragged = []
    rows = read_table(
        path,
        [*task.texts, *([split.index] if split.index else []), *([task.label] if split.labelled else [])],
        [task.label] if split.labelled is None else [],
        format=task.format,
        columns=split.columns,
        ragged=ragged if task.skip_ragged else None,
    )
    return SplitTable(
        rows=rows,
        origin=path,
        has_labels=split.labelled is not False,
        place=lambda line: f"{path} line {line}",
        index=lambda position, row: _index(split.index, row.cells[len(task.texts)]) if split.index else position,
        ragged=ragged,
    )


def _tfds_table(task, split, source):
    if task.tfds is None:
        raise UserError(f"{task.name}: needs files. Received: TensorFlow Datasets, which does not have it.")
    from keras_bert.tasks.examples.tfds_table import TfdsTable  # Imports TensorFlow.

    table = TfdsTable(task.tfds.name, source.data_dir, source.download)
    words = table.label_names(task.tfds.label)
    if words and task.labels and task.kind == SINGLE_LABEL:
        if set(words) != set(task.labels):
            raise UserError(
                f"{table.name}: needs the labels {', '.join(task.labels)}. Received: {', '.join(words)}. "
                f"Give the data of {task.name}."
            )
        words = task.labels  # The names are the truth; their order here is ours.
    has_labels = split.labelled is not False
    wanted = [*(task.tfds.texts or task.texts), *([task.tfds.label] if has_labels else [])]
    origin = f"{table.name} {split.tfds}"
    return SplitTable(
        rows=table.rows(split.tfds, wanted, task.tfds.index),
        origin=origin,
        has_labels=has_labels,
        place=lambda line: f"{origin} example {line}",
        index=lambda position, row: row.line,
        label_words=words,
    )


def _index(column, cell):
    try:
        return int(cell)
    except (TypeError, ValueError):
        raise BadCell(f"needs a whole number in the column {column!r}. Received: {cell!r}") from None


def data_source(tfds_name, folder):
    """What examples are read from: the task's files in a folder, or data that TFDS prepared there.

    Without a folder TFDS's own is taken, and what is not there is fetched.
    """
    if not folder:
        return TfdsSource(download=True)
    if tfds_name and any(map(files.exists, (files.join(folder, "dataset_info.json"), files.join(folder, tfds_name)))):
        return TfdsSource(folder)
    return folder
