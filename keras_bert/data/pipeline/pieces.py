"""A corpus divided into pieces that workers read independently."""

import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

from keras_bert.config.corpus import CorpusConfig
from keras_bert.core import files
from keras_bert.core.terminal_bar import Bar, polled
from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.documents import Corpus, is_tfds, read_source
from keras_bert.data.corpus.filters import DocumentFilters
from keras_bert.data.corpus.held_out import text_hash
from keras_bert.data.pipeline.parts import PartFiles, PartName
from keras_bert.data.pipeline.runners import Runner
from keras_bert.data.tables.hub_data import local_file
from keras_bert.data.tables.tables import open_tfds_text
from keras_bert.data.windows import groups

# Enough for the work on a block to outweigh reading and writing it, and little enough to be held in memory.
BLOCK_CHARACTERS = 1 << 24
# Several workers share a larger file. Each reads all of it, which costs far less than tokenizing it.
_BYTES_PER_READER = 64_000_000
_MOST_READERS = 4


@dataclass(frozen=True)
class Piece:
    """Every `readers`-th block of documents of one file, or of one stored file of a TFDS data set.

    Attributes:
        source: the file's place among the files of the corpus.
        key: a hash of all that the files made from this source depend on, used in their names.
        path: the file, or a `tfds:` entry.
        size: the file's size in bytes, 0 if unknown.
        reader: the number of the first block.
        readers: how many pieces the file has.
    """

    source: int
    key: str
    path: str
    size: int
    reader: int
    readers: int

    @property
    def name(self) -> str:
        """A name for the record of this piece."""
        return f"{self.key}-{self.reader}"

    def has(self, block: int) -> bool:
        """Whether a block of the file belongs to this piece."""
        return block % self.readers == self.reader

    def part(self, block: int) -> PartName:
        return self.key, block


def divide(corpus: Corpus, *settings: Any, compares_all: bool = False) -> list[Piece]:
    """The pieces of a corpus in its order, after a check of it. TFDS data sets must have been prepared.

    Args:
        settings: JSON values on which the results for a file depend, besides the settings of the corpus.
        compares_all: whether the results for a file depend on all files, as with `repeated_spans`.
    """
    corpus.check()
    stored = (open_tfds_text(entry).stored_files() if is_tfds(entry) else [entry] for entry in corpus.paths)
    paths = list(chain.from_iterable(stored))
    found = files.map_paths(_size_and_mark, paths)
    shared: list[Any] = [*settings, corpus.settings()]
    if compares_all or corpus.config.filters.repeated_spans:
        shared.append(text_hash(json.dumps([paths, found])))
    pieces = []
    for source, (path, (size, mark)) in enumerate(zip(paths, found)):
        key = f"{text_hash(json.dumps([path, size, mark, *shared])):016x}"
        readers = min(max(math.ceil(size / _BYTES_PER_READER), 1), _MOST_READERS)
        pieces += [Piece(source, key, path, size, reader, readers) for reader in range(readers)]
    return pieces


def _size_and_mark(path: str) -> tuple[int, str | float | None]:
    """`(size, mark)` of a file, to notice changed text as `Corpus.fingerprint` does; TFDS's own files do not change."""
    if is_tfds(path):
        return 0, None
    local = local_file(path)
    return files.size(local) or 0, files.content_mark(local)


def one_per_file(pieces: Iterable[Piece]) -> list[Piece]:
    """The first piece of each file. All pieces of a file have the same record, because each reads all of it."""
    return [piece for piece in pieces if piece.reader == 0]


def prepare_tfds(corpus: Corpus, runner: Runner) -> None:
    """Makes TFDS prepare the data sets of a corpus; `runner` runs the preparations that use Apache Beam.

    Raises:
        UserError: TFDS cannot prepare one.
    """
    for entry in filter(is_tfds, corpus.paths):
        open_tfds_text(entry, runner)


def read_blocks(piece: Piece, report: CorpusReport, config: CorpusConfig) -> Iterator[tuple[int, list[str]]]:
    """Iterates over all blocks of a piece's file, including those of other readers, as `(number, documents)`.

    Raises:
        UserError: the system or the store does not deliver the file. Damage inside a file is in the report, as when a
            corpus is read in one process.
    """
    filters = DocumentFilters(config.filters)
    documents = read_source(piece.path, report, config, filters, must_open=True)
    return enumerate(groups(documents, len, BLOCK_CHARACTERS))


@contextmanager
def show_progress(what: str, pieces: Sequence[Piece], parts: PartFiles, ending: str = "") -> Iterator[None]:
    """Shows the progress during the block: the text in pieces that have a record named `piece.name` + `ending`."""
    has_sizes = all(piece.size for piece in pieces)
    weights = {f"{piece.name}{ending}.json": piece.size // piece.readers if has_sizes else 1 for piece in pieces}
    unit: dict[str, Any] = {"unit": "B", "unit_scale": True} if has_sizes else {"unit": " pieces"}
    # A stream of its own, because file descriptor 2 is redirected during runs on this machine.
    with os.fdopen(os.dup(2), "w") as screen:
        bar = Bar(desc=what, total=sum(weights.values()), file=screen, **unit)
        with polled(bar, lambda: sum(weights.get(name, 0) for name in files.list_folder(parts.folder))):
            yield


def reading_record(blocks: int, report: CorpusReport) -> dict[str, Any]:
    """The record of a file with this number of blocks."""
    return {"blocks": blocks, "report": vars(report)}


def read_reports(pieces: Iterable[Piece], parts: PartFiles) -> CorpusReport:
    """The report on the reading of a corpus, from the records of its pieces."""
    report = CorpusReport()
    for record in parts.records(piece.name for piece in one_per_file(pieces)):
        report.add(CorpusReport(**record["report"]))  # Its counts are plain mappings.
    return report
