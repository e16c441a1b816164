"""A corpus divided into pieces that workers read without each other."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from keras_bert.config.corpus import CorpusConfig
from keras_bert.core import files
from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.documents import Corpus, is_tfds, read_source
from keras_bert.data.corpus.filters import DocumentFilters
from keras_bert.data.corpus.held_out import text_hash
from keras_bert.data.pipeline.runners import Runner
from keras_bert.data.tables.hub_data import local_file

# Enough for the work on a block to outweigh reading and writing it, and little enough to be held in memory.
BLOCK_CHARACTERS = 1 << 24
# Several workers share a larger file. Each reads all of it, which costs far less than tokenizing it.
_BYTES_PER_READER = 64_000_000
_MOST_READERS = 4
_HASHED_BYTES_PER_BUCKET = 1_000_000_000  # Of text. A worker sorts the hashes of a bucket in memory.
_FEWEST_BUCKETS, _MOST_BUCKETS = 4, 1024


class Piece(NamedTuple):
    """Every `readers`-th block of documents of one file, or of one stored file of a TFDS data set.

    Attributes:
        source: its place among the files of the corpus.
        path: the file, or a `tfds:` entry.
        size: of the file in bytes, 0 if it cannot be determined.
        reader: the first block.
        readers: how many pieces the file has.
    """

    source: int
    path: str
    size: int
    reader: int
    readers: int

    @property
    def name(self) -> str:
        """A name for files that belong to this piece; sorted, they are in the order of the corpus."""
        return f"{self.source:06d}-{self.reader}"

    def numbers(self, blocks: int) -> range:
        """The numbers of this piece's blocks, if the file has `blocks` in all."""
        return range(self.reader, blocks, self.readers)


def divide(corpus: Corpus) -> list[Piece]:
    """The pieces of a corpus, once checked, in its order. TFDS data sets must have been prepared."""
    corpus.check()
    pieces = []
    paths = [path for entry in corpus.paths for path in _sources(entry)]
    sizes = files.ask(lambda path: 0 if is_tfds(path) else files.size(local_file(path)) or 0, paths)
    for source, (path, size) in enumerate(zip(paths, sizes)):
        readers = min(max(math.ceil(size / _BYTES_PER_READER), 1), _MOST_READERS)
        pieces += [Piece(source, path, size, reader, readers) for reader in range(readers)]
    return pieces


def identities(pieces: list[Piece], corpus: Corpus, *settings: Any) -> list[list[Any]]:
    """JSON values that what is made of each file depends on: the file, settings and, for some filters, all files."""
    files_of = [[piece.path, piece.size] for piece in pieces if piece.reader == 0]
    shared: list[Any] = [*settings, corpus.settings()]
    if corpus.config.filters.repeated_spans:
        shared.append(text_hash(json.dumps(files_of)))
    return [[*file, *shared] for file in files_of]


def bucket_count(pieces: list[Piece]) -> int:
    """In how many buckets the hashes of documents or sentences are compared."""
    size = sum(piece.size for piece in pieces if piece.reader == 0)
    return min(max(size // _HASHED_BYTES_PER_BUCKET, _FEWEST_BUCKETS), _MOST_BUCKETS)


def prepare_tfds(corpus: Corpus, runner: Runner) -> None:
    """Has TFDS prepare the data sets of a corpus, with the runner for those that it makes with Apache Beam.

    Raises:
        UserError: TFDS cannot prepare one.
    """
    for entry in filter(is_tfds, corpus.paths):
        from keras_bert.data.tfds import TfdsText  # Imports TensorFlow.

        TfdsText(entry, runner)


def _sources(entry: str) -> list[str]:
    if not is_tfds(entry):
        return [entry]
    from keras_bert.data.tfds import TfdsText  # Imports TensorFlow.

    return TfdsText(entry).stored_files()


def read_blocks(piece: Piece, report: CorpusReport, config: CorpusConfig) -> Iterator[tuple[int, list[str]]]:
    """Iterates over all blocks of a piece's file, also those of other readers, as `(number, documents)`.

    Raises:
        UserError: the system or the store does not hand out the file. What is wrong in a file is in the report, as when
            a corpus is read in one process.
    """
    filters = DocumentFilters(config.filters)
    number, block, characters = 0, [], 0
    for document in read_source(piece.path, report, config, filters, must_open=True):
        block.append(document)
        characters += len(document)
        if characters >= BLOCK_CHARACTERS:
            yield number, block
            number, block, characters = number + 1, [], 0
    if block:
        yield number, block


def reading_record(blocks: int, report: CorpusReport) -> dict[str, Any]:
    """The record of a file that has so many blocks."""
    return {"blocks": blocks, "report": vars(report)}


def one_per_file(read: Iterable[tuple[tuple, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The record of each file in the order of the corpus, from `(piece, record)` of all pieces.

    All pieces of a file have the same record.
    """
    by_source = {Piece(*piece).source: record for piece, record in read}
    return [by_source[source] for source in sorted(by_source)]


def report_of(records: Iterable[dict[str, Any]]) -> CorpusReport:
    """The report on the reading of a corpus, from the record of each of its files in order."""
    report = CorpusReport()
    for record in records:
        of_file = CorpusReport()
        for name, value in record["report"].items():
            setattr(of_file, name, Counter(value) if isinstance(getattr(of_file, name), Counter) else value)
        report.add(of_file)
    return report
