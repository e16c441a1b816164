"""Opens data sets of TensorFlow Datasets: prepared on disk, prepared in TFDS's public bucket, or prepared here."""

from __future__ import annotations

import difflib
import logging
import re
import urllib.parse
from collections.abc import Callable
from itertools import accumulate, pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from keras_bert.core import files
from keras_bert.core.errors import MissingData, UserError, reason
from keras_bert.core.imports import import_extra, require
from keras_bert.core.terminal_bar import Bar
from keras_bert.core.time_limits import PROBE_SECONDS, any_answers
from keras_bert.data.pipeline.runners import Runner

if TYPE_CHECKING:
    import tensorflow as tf


tfds = import_extra("tensorflow_datasets", "Data of TensorFlow Datasets")
tfds.core.utils.tqdm_utils.tqdm_lib = SimpleNamespace(tqdm=Bar)  # Its own bars would fill a log.

BUCKET = "gs://tfds-data/datasets"
_BUCKET_SERVER = "https://storage.googleapis.com"
# Whose preparation needs more than Beam.
_PACKAGES = {"wikipedia": ("apache_beam", "mwparserfromhell", "mwxml")}

_ENTRY = re.compile(r"tfds:(.*?)(?::([A-Za-z_]\w*(?:\[[^\]]*\])?(?:\+.+)?))?\Z", re.DOTALL)
_DEFAULT_SPLIT = "train"

_MOST_PROBED = 3  # Servers, one after the other.

_log = logging.getLogger("keras_bert")
# They warn of every attempt and of every folder that is not there yet; what comes of it is reported here.
for _noisy in ("absl", "urllib3"):
    logging.getLogger(_noisy).setLevel(logging.ERROR)


def open_entry(entry: str, runner: Runner | None = None) -> tuple[Any, str, int]:
    """(the builder, the split, the number of its examples) of `tfds:NAME[/CONFIG][:SPLIT]`.

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
    except Exception as error:  # Of TFDS's own, for what is no split and for broken instructions.
        raise UserError(f"{entry}: needs a split of {', '.join(builder.info.splits)} ({reason(error)}).") from None


def open_builder(name: str, data_dir: str | None = None, download: bool = True, runner: Runner | None = None) -> Any:
    """The `tfds.core.DatasetBuilder` of a data set that is prepared, or is prepared by this call.

    A data set that is made with Apache Beam, such as Wikipedia, takes hours to prepare. TFDS's own copy of it is read
    from its bucket, if it is there.

    Args:
        name: `NAME[/CONFIG][:VERSION]`, or the folder that a data set was prepared in.
        data_dir: the folder in which TFDS keeps its data sets, or the folder that this one was prepared in; None for
            TFDS's default folder.
        download: whether a data set that is not in `data_dir` may be fetched.
        runner: runs Beam; None for all cores of this machine.

    Raises:
        MissingData: TFDS has no such data set; it is not there and may not be fetched; there is no network; a package
            is missing; or it cannot be prepared. The message ends with the reason, without a remedy.
    """
    try:
        for folder in (name, data_dir):
            if folder is not None and (files.is_remote(folder) or files.is_folder(folder)):
                if folder == name or files.exists(files.join(folder, "dataset_info.json")):
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


def _in_bucket(name: str) -> Any:
    """The builder of TFDS's prepared copy; None if there is none, or no network."""
    if not any_answers([_BUCKET_SERVER]):
        return None
    try:
        builder = tfds.builder(name, data_dir=BUCKET)
        return builder if builder.is_prepared() else None
    except Exception:  # Not there, or not to be read from here.
        return None


def _require_network(name: str, builder: Any) -> None:
    """Raises `MissingData` if none of the servers that a data set comes from, as far as TFDS lists them, answers."""
    servers = sorted({"{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(url)) for url in builder.url_infos or ()})
    if servers and not any_answers(servers[:_MOST_PROBED]):
        hosts = ", ".join(server.partition("//")[2] for server in servers[:_MOST_PROBED])
        raise MissingData(
            f"{name}: is not in {builder.data_path}, and there is no network to fetch it: no answer from {hosts} "
            f"within {PROBE_SECONDS:.0f} s."
        )


def _prepare_by_beam(name: str, builder: Any, runner: Runner | None) -> None:
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
        UserError: TFDS has no such data set or split, cannot prepare it, or it has no such text.
    """

    name: str
    size: int
    has_headings: bool

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
        """Entries of one stored file each, by folder, which together hold the same texts in the same order."""
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
        dataset = self._builder.as_dataset(
            split=self._split,
            decoders=tfds.decode.PartialDecoding({self._feature: True}),
            read_config=tfds.ReadConfig(interleave_cycle_length=1, try_autocache=False),
            shuffle_files=False,
        )
        return dataset.map(lambda example: example[self._feature])
