"""Counts the words of a corpus on Apache Beam, so that a vocabulary can be learned from text of any size.

Workers first hash all documents, which tells what is a duplicate and what is held out. Then they count the words of
files by themselves, and each brings together all counts of some of the words. The machine that learns the vocabulary
gets the words that are frequent enough to matter (`count_divisor`).
"""

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert.config.corpus import CorpusConfig
from keras_bert.core.files import ask, remove_folder
from keras_bert.core.imports import import_extra
from keras_bert.core.locks import take_folder
from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.documents import Corpus, no_documents
from keras_bert.data.corpus.held_out import text_hash, text_hashes, training_hashes_from
from keras_bert.data.pipeline.duplicates import Hashes
from keras_bert.data.pipeline.parts import DROPPED, PartFiles
from keras_bert.data.pipeline.pieces import (
    Piece,
    divide,
    identities,
    one_per_file,
    prepare_tfds,
    reading_record,
    report_of,
)
from keras_bert.data.pipeline.repeated import find_repeated, find_repeated_spans, read_clean_blocks
from keras_bert.data.pipeline.runners import Runner, in_worker
from keras_bert.data.shards.tokenizer_processes import start_tensorflow

if TYPE_CHECKING:
    import apache_beam as beam
else:
    beam = import_extra("apache_beam", "--runner")

_BUCKETS = 64
_READ, _HASHES = "read", "-hashes"


def count_words(
    corpus: Corpus,
    lower_case: bool,
    validation_share: float,
    folder: str,
    runner: Runner,
    report: Callable[[str], object] | None = None,
) -> Counter[str]:
    """Counts the words of `training_documents` as `text.word_counts.count_words` does.

    If there are more words than a vocabulary is learned from, those are left out that are too rare to count.

    Args:
        corpus: the text; its `report` is filled in. Workers read its files by the same paths.
        lower_case: as for the tokenizer.
        validation_share: share of documents held out, between 0 and 1.
        folder: a folder for the work, which workers write by the same path. After a failure it is left, and counts of
            files that were finished are kept if the corpus is still the same; otherwise it is removed.
        runner: runs the pipeline.
        report: receives lines of text on what is being done.

    Raises:
        UserError: no file held a document; a worker could not read or write a file, which the message names; or another
            process is using the folder.
    """
    report = report or (lambda line: None)
    prepare_tfds(corpus, runner)
    lock = take_folder(folder, f"{folder}.lock", report)
    try:
        work = _CountWork(corpus.config, folder, lower_case)
        pieces = divide(corpus)
        # What is a duplicate depends on all files.
        if work.files.keep_for(identities(pieces, corpus, lower_case, validation_share, text_hash(json.dumps(pieces)))):
            report(f"Resuming in {folder}: counts of finished files are kept.")
        find_repeated_spans(runner, pieces, corpus.config, work.files)
        shown = work.files.shown("Hashed", pieces, _HASHES)
        find_repeated(runner, pieces, work.hashes, work.files, DROPPED, shown)
        hashes = list(chain.from_iterable(ask(work.files.record, [_hashes_name(piece) for piece in pieces])))
        if hashes:
            work = replace(work, first_hash=training_hashes_from(validation_share, min(hashes), max(hashes)))
        with runner.pipeline(work.files.shown("Counted", pieces)) as pipeline:
            _build(pipeline, work, pieces)
        corpus.report = report_of(work.files.record(_READ))
        counts: Counter[str] = Counter()
        for bucket in ask(work.files.record, [_bucket_name(number) for number in range(_BUCKETS)]):
            counts.update(bucket or {})
        remove_folder(folder)
    finally:
        lock.release()
    if not corpus.report.documents:
        raise no_documents(len(corpus.paths), corpus.report, corpus.config)
    return counts


@dataclass(frozen=True)
class _CountWork:
    """The work of one count, sent to every worker. What is finished is in a file, and not done again.

    Documents with a hash below `first_hash` are held out.
    """

    reading: CorpusConfig
    folder: str
    lower_case: bool
    first_hash: int = 0

    @property
    def files(self) -> PartFiles:
        return PartFiles(self.folder)

    def hashes(self, piece: Piece) -> Iterator[Hashes]:
        """The hashes of all documents of a piece, block by block; writes down the least and the greatest."""
        extremes: list[int] = []
        for number, documents in read_clean_blocks(piece, CorpusReport(), self.reading, self.files):
            if documents and number in piece.numbers(number + 1):
                hashes = text_hashes(documents)
                extremes += [int(hashes.min()), int(hashes.max())]
                yield Hashes(piece.source, number, np.arange(len(hashes)), hashes)
        self.files.write_record(_hashes_name(piece), [min(extremes), max(extremes)] if extremes else [])

    def count(self, piece: Piece) -> tuple[dict[str, Any], int]:
        """Writes the counts of a piece. Returns the record of its file, and how many words the piece has."""
        from keras_bert.text import vocabulary_learning  # Imports TensorFlow.

        done = self.files.record(piece.name)
        if done is None:
            report, blocks, counts = CorpusReport(), 0, Counter[str]()
            for number, documents in read_clean_blocks(piece, report, self.reading, self.files):
                blocks = number + 1
                if number in piece.numbers(blocks):
                    dropped = set(self.files.dropped(piece.source, number).tolist())
                    kept = (document for place, document in enumerate(documents) if place not in dropped)
                    training = (document for document in kept if text_hash(document) >= self.first_hash)
                    counts += vocabulary_learning.count_words(training, self.lower_case)
            done = {"read": reading_record(blocks, report), "total": counts.total(), "words": counts}
            self.files.write_record(piece.name, done)
        return done["read"], done["total"]

    def buckets(self, piece: Piece) -> Iterable[tuple[int, dict[str, int]]]:
        """The counts of a piece, divided so that a word has the same bucket everywhere."""
        buckets: list[dict[str, int]] = [{} for _ in range(_BUCKETS)]
        for word, count in self.files.record(piece.name)["words"].items():
            buckets[zlib.crc32(word.encode("utf-8")) % _BUCKETS][word] = count
        return enumerate(buckets)

    def join(self, number: int, parts: Iterable[dict[str, int]], total: int) -> None:
        """Writes the counts of a bucket, of words that matter among `total`."""
        from keras_bert.text.vocabulary_learning import count_divisor

        counts: Counter[str] = Counter()
        for part in parts:
            counts.update(part)
        least = count_divisor(total)
        frequent = {word: count for word, count in counts.items() if count >= least}
        self.files.write_record(_bucket_name(number), frequent)


def _hashes_name(piece: Piece) -> str:
    return f"{piece.name}{_HASHES}"


def _bucket_name(number: int) -> str:
    return f"words-{number:03d}"


def _build(pipeline: Any, work: _CountWork, pieces: list[Piece]) -> None:
    read = (
        pipeline
        | "Pieces" >> beam.Create([tuple(piece) for piece in pieces])
        | "Spread pieces" >> beam.Reshuffle()
        | "Count" >> beam.ParDo(_Count(work))
    )
    total = read | "Words" >> beam.ParDo(_Total()) | "All words" >> beam.CombineGlobally(sum)
    _ = (
        read
        | "Divide" >> beam.ParDo(_Divide(work))
        | "By word" >> beam.GroupByKey()
        | "Join" >> beam.ParDo(_Join(work), beam.pvalue.AsSingleton(total))
    )
    _ = read | "All pieces" >> beam.combiners.ToList() | "Report" >> beam.ParDo(_Report(work))


# Elements are annotated as Any, because Beam would choose their encoding by other annotations.
class _Working(beam.DoFn):
    def __init__(self, work: _CountWork):
        self.work = work


class _Count(_Working):
    def setup(self) -> None:
        start_tensorflow()

    @in_worker
    def process(self, piece: Any) -> Iterator[Any]:
        yield piece, *self.work.count(Piece(*piece))


class _Total(beam.DoFn):
    def process(self, element: Any) -> Iterator[Any]:
        yield element[2]


class _Divide(_Working):
    @in_worker
    def process(self, element: Any) -> Iterator[Any]:
        yield from self.work.buckets(Piece(*element[0]))


class _Join(_Working):
    @in_worker
    def process(self, element: Any, total: Any) -> Iterator[Any]:
        number, parts = element
        self.work.join(number, parts, total)
        yield from ()


class _Report(_Working):
    @in_worker
    def process(self, read: Any) -> Iterator[Any]:
        self.work.files.write_record(_READ, one_per_file((piece, record) for piece, record, _ in read))
        yield from ()
