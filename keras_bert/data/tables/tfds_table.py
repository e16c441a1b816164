"""The examples of a TensorFlow Datasets data set as the rows of a table."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from keras_bert.core.errors import MissingData, UserError
from keras_bert.data.tables.rows import Reading, Row
from keras_bert.data.tfds import open_builder, open_entry, tfds

_BATCH = 1024


class TfdsTable:
    """A prepared data set, whose splits can be read.

    Args:
        builder: its builder, prepared.
        split: the split of `rows`.

    Attributes:
        name: its full name with its version and, if there is one, the split.
    """

    name: str

    def __init__(self, builder: Any, split: str | None = None):
        self._builder, self._split = builder, split
        self.name = builder.info.full_name + (f":{split}" if split else "")

    def label_names(self, feature: str) -> tuple[str, ...] | None:
        """The names of a label's classes in TFDS's order, or None if the feature is not a class label."""
        features = self._builder.info.features
        label = features[feature] if feature in features else None
        return tuple(label.names) if isinstance(label, tfds.features.ClassLabel) else None

    def rows(self, reading: Reading) -> Iterator[Row]:
        """Iterates over the rows of the split, as of every table. Raises `UserError` as `examples`."""
        assert self._split is not None
        features = self._builder.info.features
        there = [name for name in (*reading.wanted, *reading.optional) if name.partition("/")[0] in features]
        for name in reading.wanted:
            if name not in there:
                raise reading.missing(self.name, list(features), name)
        places = {name: place for place, name in enumerate(there)}
        for row in self.examples(self._split, there):
            yield row._replace(
                cells=tuple(
                    row.cells[places[name]] if name in places else None for name in (*reading.wanted, *reading.optional)
                )
            )

    def examples(self, split: str, wanted: Sequence[str], index: str | None = None) -> Iterable[Row]:
        """Every example of a split, sorted by the feature `index`, or in stored order if None.

        TFDS stores examples shuffled; sorted by GLUE's `idx`, they are in the order of GLUE's own files.

        Args:
            split: its name in TFDS.
            wanted: names of features; `answers/text` is the list of the `text`s in the sequence `answers`, or the
                feature `text` of `answers` if that is no sequence. Strings are decoded; sequences become lists; class
                labels become names, or None if the data set hides them (-1).
            index: the feature to sort by.

        Returns:
            Rows whose `line` is the value of `index`, or the index in stored order.

        Raises:
            UserError: there is no such split or feature, or a text is not UTF-8.
        """
        info = self._builder.info
        for needed, what, there in (
            (re.split(r"[\[+]", split)[0], "split", info.splits),
            *((name.partition("/")[0], "feature", info.features) for name in wanted),
        ):
            if needed not in there:
                raise UserError(f"{self.name}: needs a {what} {needed!r}. Received: {', '.join(there) or 'none'}.")
        if index is None or index not in info.features:
            return self._rows(split, wanted, ())
        return sorted(self._rows(split, wanted, (index,)), key=lambda row: row.line)

    def _rows(self, split: str, wanted: Sequence[str], index: Sequence[str]) -> Iterator[Row]:
        names = (*wanted, *index)
        dataset = self._builder.as_dataset(
            split=split,
            decoders=tfds.decode.PartialDecoding({name.partition("/")[0]: True for name in names}),
            read_config=tfds.ReadConfig(interleave_cycle_length=1, try_autocache=False),
            shuffle_files=False,
        )
        within, count = f"{self.name}{'' if self._split else f' {split}'} example", 0
        # ragged_batch() returns sequences, which batch() rejects, as ragged; single values are as from batch().
        for batch in dataset.ragged_batch(_BATCH).as_numpy_iterator():
            columns = [self._plain(split, name, _column(batch, name)) for name in wanted]
            size = len(_column(batch, names[0]))
            numbers = _column(batch, *index).tolist() if index else range(count, count + size)
            count += size
            yield from (Row(number, cells, within) for number, cells in zip(numbers, zip(*columns)))

    def _plain(self, split: str, name: str, values: np.ndarray) -> list[Any]:
        feature = self._builder.info.features[name.partition("/")[0]]
        feature = getattr(feature, "feature", feature)  # Of a sequence, that of its items.
        if isinstance(feature, tfds.features.ClassLabel):
            return _named(values.tolist(), feature.names)
        if values.dtype != object:
            return values.tolist()
        try:
            return [_decoded(value) for value in values]
        except UnicodeDecodeError as error:
            raise UserError(
                f"{self.name} {split}: needs UTF-8 text in {name!r}. Received: {error.object[:40]!r}."
            ) from None


def open_tfds_table(entry: str) -> TfdsTable:
    """The table of `tfds:NAME[/CONFIG][:SPLIT]`. Raises `UserError`; see `open_entry`."""
    builder, split, _ = open_entry(entry)
    return TfdsTable(builder, split)


def open_task_table(name: str, data_dir: str | None, download: bool, own_files: Sequence[str]) -> TfdsTable:
    """The data set of a task.

    Args:
        name: `DATASET/CONFIG`.
        data_dir, download: see `open_builder`.
        own_files: the names of files to propose instead.

    Raises:
        MissingData: there is no such data set; or it is not prepared, and may not be downloaded or that fails.
    """
    try:
        return TfdsTable(open_builder(name, data_dir, download))
    except MissingData as error:
        files = f"--data-dir with its files ({', '.join(own_files)})" if own_files else "files"
        raise MissingData(f"{error} Give {files} instead.") from None


def _named(values: list[Any], names: Sequence[str]) -> list[Any]:
    """Names of classes in place of their numbers, in lists too."""
    return [
        _named(value, names) if isinstance(value, list) else names[value] if value >= 0 else None for value in values
    ]


def _column(batch: dict[str, Any], name: str) -> np.ndarray:
    """The values of one feature, as an array; its items are lists if the feature is in a sequence."""
    feature, _, inner = name.partition("/")
    rows = batch[feature][inner] if inner else batch[feature]
    if rows.ndim == 1 and not isinstance(rows[0], np.ndarray):
        return rows
    # A sequence for each row; two-dimensional if all have the same length.
    column = np.empty(len(rows), object)
    for place, row in enumerate(rows):
        column[place] = row.tolist()
    return column


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(item) if isinstance(item, bytes) else item for item in value]
    return value.decode("utf-8")
