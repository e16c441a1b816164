"""Opens data sets of TensorFlow Datasets, prepares them if necessary, and reads them as texts or as tables."""

from __future__ import annotations

import difflib
import logging
import re
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert.core import files
from keras_bert.core.errors import MissingData, UserError, reason
from keras_bert.core.imports import import_extra, require
from keras_bert.core.terminal_bar import Bar
from keras_bert.core.time_limits import PROBE_SECONDS, any_answers
from keras_bert.data.pipeline.runners import Runner
from keras_bert.data.tables.rows import Reading, Row, picked

if TYPE_CHECKING:
    import tensorflow as tf
    from tensorflow_datasets.core import DatasetBuilder

tfds = import_extra("tensorflow_datasets", "Data of TensorFlow Datasets")
tfds.core.utils.tqdm_utils.tqdm_lib = SimpleNamespace(tqdm=Bar)  # Its own bars would fill a log.

BUCKET = "gs://tfds-data/datasets"
_BUCKET_SERVER = "https://storage.googleapis.com"
# The packages to prepare data sets that need more than Beam.
_PACKAGES = {"wikipedia": ("apache_beam", "mwparserfromhell", "mwxml")}

_ENTRY = re.compile(r"tfds:(.*?)(?::([A-Za-z_]\w*(?:\[[^\]]*\])?(?:\+.+)?))?\Z", re.DOTALL)
_DEFAULT_SPLIT = "train"

_MOST_PROBED = 3  # Servers, one after the other.

_log = logging.getLogger(__name__)
# They warn about every attempt and every folder that does not exist yet; this module reports the outcome.
for _noisy in ("absl", "urllib3"):
    logging.getLogger(_noisy).setLevel(logging.ERROR)


def open_entry(entry: str, runner: Runner | None = None) -> tuple[DatasetBuilder, str, int]:
    """Return (the builder, the split, the number of its examples) of `tfds:NAME[/CONFIG][:SPLIT]`.

    Args:
        entry: NAME may also be the folder that a data set was prepared in. The default split is `train`.
        runner: prepares a data set that TFDS makes with Apache Beam; see `open_builder`.

    Raises:
        UserError: TFDS has no such data set or split, or cannot prepare it.
    """
    found = _ENTRY.match(entry)
    assert found is not None, entry
    name, split = found.groups()
    split = split or _DEFAULT_SPLIT
    try:
        builder = open_builder(name, runner=runner)
    except MissingData as error:
        raise UserError(f"tfds:{error} Give another tfds:NAME[/CONFIG][:SPLIT], or files.") from None
    try:
        return builder, split, builder.info.splits[split].num_examples
    except Exception as error:  # TFDS has its own types for unknown splits and broken instructions.
        raise UserError(f"{entry}: needs a split of {', '.join(builder.info.splits)} ({reason(error)}).") from None


def open_builder(
    name: str, data_dir: str | None = None, download: bool = True, runner: Runner | None = None
) -> DatasetBuilder:
    """The `tfds.core.DatasetBuilder` of a data set, which this call prepares if necessary.

    A data set that is made with Apache Beam, such as Wikipedia, takes hours to prepare. If TFDS has a prepared copy in
    its bucket, that is read instead.

    Args:
        name: `NAME[/CONFIG][:VERSION]`, or the folder that a data set was prepared in.
        data_dir: the folder in which TFDS keeps its data sets, or the folder that this one was prepared in; None for
            TFDS's default folder.
        download: whether a data set that is not in `data_dir` may be fetched.
        runner: runs Beam; None for all cores of this machine.

    Raises:
        MissingData: TFDS has no such data set; it is not prepared and may not be fetched; there is no network; a
            package is missing; or it cannot be prepared. The message ends with the reason, without a remedy.
    """
    try:
        for folder in (name, data_dir):
            if folder is not None and (files.is_remote(folder) or files.is_folder(folder)):
                # Beside a folder with a user's own files of CoNLL-2003, say, conll2003 is still TFDS's.
                if files.exists(files.join(folder, "dataset_info.json")) or folder == name and not _is_tfds_own(name):
                    return tfds.builder_from_directory(folder)
        builder = tfds.builder(name, data_dir=data_dir)
        if builder.is_prepared():
            return builder
    except tfds.core.DatasetNotFoundError:
        nearest = difflib.get_close_matches(name.partition("/")[0], tfds.list_builders(), n=1)
        hint = f" Did you mean {nearest[0]}?" if nearest else ""
        raise MissingData(f"{name}: tensorflow_datasets has no such data set.{hint}") from None
    except Exception as error:  # TFDS raises almost anything.
        raise MissingData(f"{name}: tensorflow_datasets cannot open it: {reason(error, 120)}.") from None
    if not download:
        raise MissingData(f"{name}: needs a data set prepared in {builder.data_path}. Received: none.")
    by_beam = isinstance(builder, tfds.core.BeamBasedBuilder)
    found = _in_bucket(name) if by_beam else None
    if found is not None:
        _log.warning("%s is read from %s, where TFDS has prepared it.", name, found.data_path)
        return found
    _require_network(name, builder)
    _log.warning("%s is not in %s yet: tensorflow_datasets prepares it.", name, builder.data_path)
    if by_beam:
        _prepare_by_beam(name, builder, runner)
    else:
        _prepared(name, builder.download_and_prepare)
    return builder


def _is_tfds_own(name: str) -> bool:
    return name.partition("/")[0] in tfds.list_builders(with_community_datasets=False)


def _in_bucket(name: str) -> DatasetBuilder | None:
    """The builder of TFDS's prepared copy; None if there is none, or no network."""
    if not any_answers([_BUCKET_SERVER]):
        return None
    try:
        builder = tfds.builder(name, data_dir=BUCKET)
        return builder if builder.is_prepared() else None
    except Exception:  # Missing, or not readable from here.
        return None


def _require_network(name: str, builder: DatasetBuilder) -> None:
    """Raises `MissingData` if TFDS lists the servers of a data set and none of the first few answers."""
    servers = sorted({"{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(url)) for url in builder.url_infos or ()})
    if servers and not any_answers(servers[:_MOST_PROBED]):
        hosts = ", ".join(server.partition("//")[2] for server in servers[:_MOST_PROBED])
        raise MissingData(
            f"{name}: is not in {builder.data_path}, and there is no network to fetch it: no answer from {hosts} "
            f"within {PROBE_SECONDS:.0f} s."
        )


def _prepare_by_beam(name: str, builder: DatasetBuilder, runner: Runner | None) -> None:
    packages = _PACKAGES.get(builder.name, ("apache_beam",))
    for package in packages:
        require(package, f"Preparing {name}", "tfds-wikipedia" if len(packages) > 1 else None)
    runner = runner or Runner("direct")
    config = tfds.download.DownloadConfig(beam_runner=runner.beam_runner(), beam_options=runner.options())
    with runner.worker_environment():
        _prepared(name, lambda: builder.download_and_prepare(download_config=config))


def _prepared(name: str, prepare: Callable[[], object]) -> None:
    try:
        prepare()
    except UserError:
        raise
    except Exception as error:
        raise MissingData(f"{name}: tensorflow_datasets could not prepare it: {reason(error)}.") from None


def _stored_examples(builder: DatasetBuilder, split: str, features: Iterable[str]) -> tf.data.Dataset:
    """The examples of a split in stored order, with these features."""
    return builder.as_dataset(
        split=split,
        decoders=tfds.decode.PartialDecoding(dict.fromkeys(features, True)),
        read_config=tfds.ReadConfig(interleave_cycle_length=1, try_autocache=False),
        shuffle_files=False,
    )


TEXT_FEATURE = "text"


class TfdsText:
    """One split of a TFDS corpus, which is prepared if necessary.

    Args:
        entry: `tfds:NAME[/CONFIG][:SPLIT]`; NAME may also be the folder that a data set was prepared in. The default
            split is `train`.
        runner: prepares a data set that TFDS makes with Apache Beam; see `open_builder`.
        text: the feature with the text; the default is the feature `text`, or else the first that is a string.

    Attributes:
        name: the data set's full name with its version, and the split.
        size: number of examples.
        has_headings: whether the texts are Wikipedia's, with headings and lists among the paragraphs.

    Raises:
        UserError: TFDS has no such data set or split, cannot prepare it, or it has no such feature.
    """

    def __init__(self, entry: str, runner: Runner | None = None, text: str = TEXT_FEATURE):
        self._builder, split, self.size = open_entry(entry, runner)
        self.name = f"{self._builder.info.full_name}:{split}"
        self.has_headings = self._builder.name == "wikipedia"
        self._split = split
        self._feature = self._string_feature(entry, text)

    def _string_feature(self, entry: str, wanted: str) -> str:
        features = self._builder.info.features
        received = " ".join(str(features).split())
        names = [
            name
            for name, feature in (features.items() if hasattr(features, "items") else ())
            if feature.shape == () and feature.np_dtype in (object, str, bytes)
        ]
        if wanted in names:
            return wanted
        if not names or wanted != TEXT_FEATURE:
            raise UserError(
                f"{entry}: needs a text feature {wanted!r}. Received: {received}. Name another with --text (data.text)."
            )
        return names[0]

    def stored_files(self) -> list[str]:
        """A `tfds:FOLDER:SPLIT[FIRST:LAST]` for each stored file; joined, they give the same texts in order."""
        splits = self._builder.info.splits
        entries = []
        for part in tfds.core.ReadInstruction.from_spec(self._split).to_absolute(splits):
            edges = [0, *accumulate(splits[part.splitname].shard_lengths)]
            begin, end = part.from_ or 0, edges[-1] if part.to is None else part.to
            for first, last in pairwise(edges):
                first, last = max(first, begin), min(last, end)
                if first < last:
                    entries.append(f"tfds:{self._builder.data_path}:{part.splitname}[{first}:{last}]")
        return entries

    def dataset(self) -> tf.data.Dataset:
        """The texts in stored order: scalar strings."""
        dataset = _stored_examples(self._builder, self._split, [self._feature])
        return dataset.map(lambda example: example[self._feature])


_BATCH = 1024


class TfdsTable:
    """A prepared data set, whose splits can be read.

    Args:
        split: the split that `rows` reads.

    Attributes:
        name: its full name with its version and, if there is one, the split.
    """

    def __init__(self, builder: DatasetBuilder, split: str | None = None):
        self._builder, self._split = builder, split
        self.name = builder.info.full_name + (f":{split}" if split else "")

    def label_names(self, feature: str) -> tuple[str, ...] | None:
        """The names of a label's classes in TFDS's order, or None if the feature is not a class label."""
        features = self._builder.info.features
        label = features[feature] if feature in features else None
        return tuple(label.names) if isinstance(label, tfds.features.ClassLabel) else None

    def rows(self, reading: Reading) -> Iterator[Row]:
        """Iterates over the rows of the split, like `Table.rows`. Raises `UserError` like `examples`."""
        assert self._split is not None
        features = self._builder.info.features
        columns = (*reading.wanted, *reading.optional)
        there = [name for name in columns if name.partition("/")[0] in features]
        for name in reading.wanted:
            if name not in there:
                raise reading.missing(self.name, list(features), name)
        places = [there.index(name) if name in there else None for name in columns]
        for row in self.examples(self._split, there):
            yield row._replace(cells=picked(row.cells, places))

    def examples(self, split: str, wanted: Sequence[str], index: str | None = None) -> Iterable[Row]:
        """Every example of a split, sorted by the feature `index`, or in stored order if None.

        TFDS stores examples shuffled; sorted by GLUE's `idx`, they are in the order of GLUE's own files.

        Args:
            split: its name in TFDS.
            wanted: names of features; `answers/text` is the list of the `text`s in the sequence `answers`, or the
                feature `text` of `answers` if that is no sequence. Strings are decoded; sequences become lists; class
                labels become names, or None if the data set hides them (-1).
            index: the feature to sort by; ignored if the data set does not have it.

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
        dataset = _stored_examples(self._builder, split, [name.partition("/")[0] for name in names])
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
        feature = getattr(feature, "feature", feature)  # For a sequence, the feature of its items.
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
        MissingData: there is no such data set; or it is not prepared, and downloading it is not allowed or fails.
    """
    try:
        return TfdsTable(open_builder(name, data_dir, download))
    except MissingData as error:
        files = f"--data-dir with its files ({', '.join(own_files)})" if own_files else "files"
        raise MissingData(f"{error} Give {files} instead.") from None


def _named(values: list[Any], names: Sequence[str]) -> list[Any]:
    """Replace the numbers of classes by their names, also in lists."""
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
