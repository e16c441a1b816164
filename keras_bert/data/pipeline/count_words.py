"""Counts the words of a corpus on Apache Beam, so that a vocabulary can be learned from text of any size.

Workers first hash all documents, to find duplicates and what is held out. Then they count the words of single files,
and each adds up all counts of some of the words. The machine that learns the vocabulary gets only the words that are
frequent enough to matter (`count_divisor`).
"""

import logging
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from keras_bert.config.corpus import CorpusConfig
from keras_bert.core.files import remove_folder
from keras_bert.core.locks import folder_taken
from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.documents import Corpus, no_documents
from keras_bert.data.corpus.held_out import text_hash, text_hashes, training_hashes_from
from keras_bert.data.pipeline.parts import DROPPED, PartFiles
from keras_bert.data.pipeline.pieces import (
    Piece,
    divide,
    one_per_file,
    prepare_tfds,
    read_reports,
    reading_record,
    show_progress,
)
from keras_bert.data.pipeline.repeated import Hashes, find_all_repeated, find_repeated_spans, read_clean_blocks
from keras_bert.data.pipeline.runners import Runner, spread, stage
from keras_bert.data.shards.document_tokenizer import start_tensorflow

if TYPE_CHECKING:
    from apache_beam import Pipeline

_log = logging.getLogger(__name__)

_BUCKETS = 64
_HASHES = "-hashes"


def count_words(corpus: Corpus, lower_case: bool, validation_share: float, folder: str, runner: Runner) -> Counter[str]:
    """Counts the words of `training_documents`, like `text.vocabulary_learning.count_words`.

    If the text is longer than a vocabulary is learned from, words that are too rare to matter are left out.

    Args:
        corpus: the text; its `report` is filled in. Workers read its files by the same paths.
        validation_share: share of documents held out, between 0 and 1.
        folder: a folder for the work, which workers write by the same path; removed at the end. After a failure it
            stays, and a new start with the same corpus keeps the counts of finished files.

    Raises:
        UserError: no file held a document; a worker could not read or write a file, which the message names; or another
            process is using the folder.
    """
    prepare_tfds(corpus, runner)
    with folder_taken(folder):
        # Which documents are duplicates depends on all files.
        pieces = divide(corpus, "words", lower_case, validation_share, compares_all=True)
        work = _CountWork(corpus.config, folder, lower_case)
        if work.parts.keep_for([piece.key for piece in one_per_file(pieces)]):
            _log.info(f"Resuming in {folder}: counts of finished files are kept.")
        find_repeated_spans(runner, pieces, corpus.config, work.parts)
        shown = show_progress("Hashed", pieces, work.parts, _HASHES)
        find_all_repeated(runner, pieces, work.hashes, work.parts, DROPPED, shown)
        extremes = list(chain.from_iterable(work.parts.records(map(_extremes_name, pieces))))
        if extremes:
            first_hash = training_hashes_from(validation_share, min(extremes), max(extremes))
            work = replace(work, first_hash=first_hash)
        with runner.pipeline(show_progress("Counted", pieces, work.parts)) as pipeline:
            _build(pipeline, work, pieces)
        corpus.report = read_reports(pieces, work.parts)
        counts: Counter[str] = Counter()
        for bucket in work.parts.records(map(_bucket_name, range(_BUCKETS))):
            counts.update(bucket or {})
        remove_folder(folder)
    if not corpus.report.documents:
        raise no_documents(len(corpus.paths), corpus.report, corpus.config)
    return counts


def _build(pipeline: "Pipeline", work: "_CountWork", pieces: list[Piece]) -> None:
    import apache_beam as beam

    counted = spread(pipeline, pieces) | stage("Count", work.count)
    total = counted | stage("Words", _total) | "All words" >> beam.CombineGlobally(sum)
    _ = counted | "By word" >> beam.GroupByKey() | stage("Join", work.join, beam.pvalue.AsSingleton(total))


@dataclass(frozen=True)
class _CountWork:
    """The tasks of the workers, sent to each of them. Finished work is in files and is not repeated.

    Documents with a hash below `first_hash` are held out.
    """

    reading: CorpusConfig
    folder: str
    lower_case: bool
    first_hash: int = 0

    @property
    def parts(self) -> PartFiles:
        return PartFiles(self.folder)

    def hashes(self, piece: Piece) -> Iterator[Hashes]:
        """The hashes of all documents of a piece, block by block; records the least and the greatest."""
        extremes: list[int] = []
        for number, documents in read_clean_blocks(piece, CorpusReport(), self.reading, self.parts):
            if documents and piece.has(number):
                hashes = text_hashes(documents)
                extremes += [int(hashes.min()), int(hashes.max())]
                yield Hashes.of(piece, number, hashes)
        self.parts.write_record(_extremes_name(piece), [min(extremes), max(extremes)] if extremes else [])

    def count(self, piece: Piece) -> Iterator[tuple[int, dict[str, int]]]:
        """Records the counts of a piece, and yields them in buckets: `(bucket, counts)`.

        A word has the same bucket everywhere.
        """
        start_tensorflow()
        if self.parts.record(piece.name) is None:
            self._count(piece)
        buckets: list[dict[str, int]] = [{} for _ in range(_BUCKETS)]
        for word, count in self.parts.record(_words_name(piece)).items():
            buckets[zlib.crc32(word.encode("utf-8")) % _BUCKETS][word] = count
        yield from enumerate(buckets)

    def _count(self, piece: Piece) -> None:
        from keras_bert.text import vocabulary_learning  # Imports TensorFlow.

        report, blocks, counts = CorpusReport(), 0, Counter[str]()
        for number, documents in read_clean_blocks(piece, report, self.reading, self.parts):
            blocks = number + 1
            if piece.has(number):
                dropped = set(self.parts.places(DROPPED, piece.part(number)).tolist())
                kept = (document for place, document in enumerate(documents) if place not in dropped)
                training = (document for document in kept if text_hash(document) >= self.first_hash)
                counts += vocabulary_learning.count_words(training, self.lower_case)
        self.parts.write_record(_words_name(piece), counts)
        self.parts.write_record(piece.name, reading_record(blocks, report))

    def join(self, bucket: tuple[int, Iterable[dict[str, int]]], total: int) -> None:
        """Records a bucket's counts of the words that are frequent enough, given the `total` of all counts."""
        from keras_bert.text.vocabulary_learning import count_divisor

        number, parts = bucket
        counts: Counter[str] = Counter()
        for part in parts:
            counts.update(part)
        least = count_divisor(total)
        frequent = {word: count for word, count in counts.items() if count >= least}
        self.parts.write_record(_bucket_name(number), frequent)


def _total(bucket: tuple[int, dict[str, int]]) -> list[int]:
    return [sum(bucket[1].values())]


def _extremes_name(piece: Piece) -> str:
    return f"{piece.name}{_HASHES}"


def _words_name(piece: Piece) -> str:
    return f"{piece.name}-words"


def _bucket_name(number: int) -> str:
    return f"words-{number:03d}"
