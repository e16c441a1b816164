"""The examples of a TensorFlow Datasets data set as the rows of a table."""

import logging

import numpy as np

from keras_bert import files
from keras_bert.data.tables import Row
from keras_bert.errors import UserError
from keras_bert.extras import import_extra

tfds = import_extra("tensorflow_datasets", "A task without files of its own (--data-dir)")

_BATCH = 1024


class TfdsTable:
    """One prepared data set, of which splits are read.

    Attributes:
        name: the data set's full name with its version.
    """

    def __init__(self, name, data_dir=None, download=False):
        """`name`: `DATASET/CONFIG`.

        Args:
            data_dir: the folder in which TFDS keeps its data sets, or the very folder that this one was prepared in;
                TFDS's own folder if None.
            download: whether a data set that is not there may be fetched and prepared.

        Raises:
            UserError: there is no such data set, it is not prepared and must not be fetched, or that fails.
        """
        try:
            if data_dir is not None and files.exists(files.join(data_dir, "dataset_info.json")):
                self._builder = tfds.builder_from_directory(data_dir)
                is_prepared = True
            else:
                self._builder = tfds.builder(name, data_dir=data_dir)
                is_prepared = self._builder.is_prepared()
            if download and not is_prepared:
                logging.getLogger("keras_bert").warning(
                    "%s is not in %s yet: tensorflow_datasets fetches it.", name, self._builder.data_path
                )
                # It warns of every attempt; what comes of them is told below.
                logging.getLogger("urllib3").setLevel(logging.ERROR)
                self._builder.download_and_prepare()
                is_prepared = True
        except Exception as error:  # TFDS raises nearly anything: of the network, of a missing package, its own.
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise UserError(
                f"{name}: needs a data set that tensorflow_datasets can prepare. Received: {reason}. "
                "Give files in its place."
            ) from None
        if not is_prepared:
            raise UserError(
                f"{name}: needs a data set prepared in {self._builder.data_path}. Received: none is there. "
                "Allow the download, or give files in its place."
            )
        self.name = self._builder.info.full_name

    def label_names(self, feature):
        """The names of a label's classes in TFDS's order, or None where it is no class label."""
        features = self._builder.info.features
        label = features[feature] if feature in features else None
        return tuple(label.names) if isinstance(label, tfds.features.ClassLabel) else None

    def rows(self, split, wanted, index=None):
        """Every example of a split, in the order of the feature `index` (the stored order if None).

        TFDS stores examples shuffled; sorted by GLUE's `idx` they stand as in GLUE's own files.

        Args:
            split: TFDS's name of it.
            wanted: names of features; `answers/text` is the `text` in each of the sequence `answers`, a list. Strings
                are handed out as text, class labels as names, None for those that the data set hides (-1).

        Returns:
            list of `Row`s whose `line` is the value of `index`, or the place in the stored order.

        Raises:
            UserError: no such split or feature, a text that is not UTF-8.
        """
        info = self._builder.info
        for needed, what, there in (
            (split, "split", info.splits),
            *((name.partition("/")[0], "feature", info.features) for name in wanted),
        ):
            if needed not in there:
                raise UserError(f"{self.name}: needs a {what} {needed!r}. Received: {', '.join(there) or 'none'}.")
        names = [*wanted, index] if index in info.features else list(wanted)
        dataset = self._builder.as_dataset(
            split=split,
            decoders=tfds.decode.PartialDecoding({name.partition("/")[0]: True for name in names}),
            read_config=tfds.ReadConfig(interleave_cycle_length=1, try_autocache=False),
            shuffle_files=False,
        )
        # Sequences, which batch() does not take, come out as ragged; what is one value an example as batch() has it.
        batches = list(dataset.ragged_batch(_BATCH).as_numpy_iterator())
        if not batches:
            return []
        cells = {name: np.concatenate([_column(batch, name) for batch in batches]) for name in names}
        count = len(cells[names[0]])
        numbers = cells[index].tolist() if len(names) > len(wanted) else range(count)
        columns = [self._plain(split, name, cells[name]) for name in wanted]
        return sorted((Row(number, row) for number, row in zip(numbers, zip(*columns))), key=lambda row: row.line)

    def _plain(self, split, name, values):
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


def _column(batch, name):
    """The values of one feature, an array whose items are lists where the feature is in a sequence."""
    feature, _, inner = name.partition("/")
    if not inner:
        return batch[feature]
    rows = batch[feature][inner]  # Of two dimensions where all are of one length.
    column = np.empty(len(rows), object)
    for place, row in enumerate(rows):
        column[place] = row.tolist()
    return column


def _decoded(value):
    if isinstance(value, list):
        return [_decoded(item) if isinstance(item, bytes) else item for item in value]
    return value.decode("utf-8")
