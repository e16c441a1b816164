"""The examples of a TensorFlow Datasets data set as the rows of a table."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert.data.corpus.tables import Row
from keras_bert.data.tfds_builder import open_builder, tfds
from keras_bert.errors import MissingData, UserError
from keras_bert.tasks.examples.sources import TfdsSource

_BATCH = 1024


class TfdsTable:
    """A prepared data set, whose splits can be read.

    Args:
        name: `DATASET/CONFIG`.
        source: where it is prepared, and whether a missing data set may be downloaded.

    Attributes:
        name: the data set's full name with its version.

    Raises:
        MissingData: there is no such data set; or it is not prepared, and may not be downloaded or that fails.
    """

    name: str

    def __init__(self, name: str, source: TfdsSource):
        try:
            self._builder = open_builder(name, source.data_dir, source.download)
        except MissingData as error:
            files = f"--data-dir with its files ({', '.join(source.own_files)})" if source.own_files else "files"
            raise MissingData(f"{error} Give {files} instead.") from None
        self.name = self._builder.info.full_name

    def label_names(self, feature: str) -> tuple[str, ...] | None:
        """The names of a label's classes in TFDS's order, or None if the feature is not a class label."""
        features = self._builder.info.features
        label = features[feature] if feature in features else None
        return tuple(label.names) if isinstance(label, tfds.features.ClassLabel) else None

    def rows(self, split: str, wanted: Sequence[str], index: str | None = None) -> list[Row]:
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
            (split, "split", info.splits),
            *((name.partition("/")[0], "feature", info.features) for name in wanted),
        ):
            if needed not in there:
                raise UserError(f"{self.name}: needs a {what} {needed!r}. Received: {', '.join(there) or 'none'}.")
        names = [*wanted, index] if index is not None and index in info.features else list(wanted)
        dataset = self._builder.as_dataset(
            split=split,
            decoders=tfds.decode.PartialDecoding({name.partition("/")[0]: True for name in names}),
            read_config=tfds.ReadConfig(interleave_cycle_length=1, try_autocache=False),
            shuffle_files=False,
        )
        # ragged_batch() returns sequences, which batch() rejects, as ragged; single values are as from batch().
        batches = list(dataset.ragged_batch(_BATCH).as_numpy_iterator())
        if not batches:
            return []
        cells = {name: np.concatenate([_column(batch, name) for batch in batches]) for name in names}
        count = len(cells[names[0]])
        numbers = cells[names[-1]].tolist() if len(names) > len(wanted) else range(count)
        columns = [self._plain(split, name, cells[name]) for name in wanted]
        return sorted((Row(number, row) for number, row in zip(numbers, zip(*columns))), key=lambda row: row.line)

    def _plain(self, split: str, name: str, values: np.ndarray) -> list[Any]:
        classes = self.label_names(name)
        if classes is not None:
            return [None if value < 0 else classes[value] for value in values.tolist()]
        if values.dtype != object:
            return values.tolist()
        try:
            return [_decoded(value) for value in values]
        except UnicodeDecodeError as error:
            raise UserError(
                f"{self.name} {split}: needs UTF-8 text in {name!r}. Received: {error.object[:40]!r}."
            ) from None


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
