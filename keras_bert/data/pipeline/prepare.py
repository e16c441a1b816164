"""`prepare` as an Apache Beam pipeline: the shards of `data.shards.prepare`, byte for byte, made by many workers.

1. Tokenize: each worker reads files and writes their documents, tokenized, into parts of some megabytes.
2. Find duplicates: the hashes of all documents are brought together, in buckets.
3. Plan: one worker reads the sizes of all documents and decides where shards end.
4. Write: each shard is put together from its parts.

The text itself never passes through the runner, which holds hashes and plans only. Finished work is in files, which a
pipeline that is started again reads instead of repeating it.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from keras_bert.config.corpus import CorpusConfig
from keras_bert.core.files import StrPath, join, make_folder, remove_file, remove_folder
from keras_bert.core.whole_files import write_json
from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.documents import Corpus, no_documents
from keras_bert.data.corpus.held_out import (
    DUPLICATE,
    SIDES,
    TRAIN,
    VALIDATION,
    SideSplit,
    is_validation_hash,
    text_hashes,
)
from keras_bert.data.pipeline.parts import DROPPED, PartFiles, PartName
from keras_bert.data.pipeline.pieces import (
    Piece,
    divide,
    one_per_file,
    prepare_tfds,
    read_reports,
    reading_record,
    show_progress,
)
from keras_bert.data.pipeline.repeated import Hashes, find_repeated_spans, read_clean_blocks, record_repeated
from keras_bert.data.pipeline.runners import Runner, spread, stage
from keras_bert.data.shards.document_tokenizer import BATCH_CHARACTERS, start_tensorflow
from keras_bert.data.shards.prepare import PrepareReport, ShardSettings
from keras_bert.data.shards.prepared_folder import prepared_folder
from keras_bert.data.shards.shard_format import (
    ShardCuts,
    TokenizedDocuments,
    add_shard,
    shard_bytes,
    shard_name,
    write_shard,
)
from keras_bert.data.windows import groups

if TYPE_CHECKING:
    from apache_beam import Pipeline

_log = logging.getLogger(__name__)

_PLANNED = "planned"


def prepare(corpus: Corpus, settings: ShardSettings, folder: StrPath, runner: Runner) -> PrepareReport:
    """Writes the same files as `data.shards.prepare.prepare`, on a runner of Apache Beam.

    A new start with the same arguments after a failure keeps finished parts and shards; if files of the corpus have
    changed, it keeps only the parts of the others.

    Args:
        corpus: the text; its `report` is filled in. Workers read its files by the same paths.
        folder: as for `data.shards.prepare.prepare`; workers write it by the same path.

    Returns:
        A report on the whole result.

    Raises:
        UserError: as for `data.shards.prepare.prepare`; or a worker could not read or write a file, which the message
            names.
    """
    prepare_tfds(corpus, runner)
    record = {"runner": "Beam", **settings.record(), "reading": corpus.settings() or None}
    with prepared_folder(folder, settings.tokenizer.vocabulary, record) as (unfinished, check):
        pieces = divide(corpus)
        work = PrepareWork(settings, corpus.config, unfinished.folder)
        sides = [join(work.folder, side) for side in SIDES]
        unfinished.save()
        keys = [piece.key for piece in one_per_file(pieces)]
        if work.parts.keep_for(keys, sides):
            _log.info(f"Resuming in {work.folder}: finished parts and shards are kept.")
        for side in sides:
            make_folder(side)
            remove_file(join(side, "meta.json"))
        find_repeated_spans(runner, pieces, corpus.config, work.parts)
        with runner.pipeline(show_progress("Tokenized", pieces, work.parts)) as pipeline:
            _build(pipeline, work, pieces)
        check()
        summary = finish(corpus, work, pieces)
        settings.learn_collocations(work.folder)
        return summary


def _build(pipeline: "Pipeline", work: "PrepareWork", pieces: list[Piece]) -> None:
    import apache_beam as beam

    hashes = spread(pipeline, pieces) | stage("Tokenize", work.tokenize)
    recorded = record_repeated(hashes, pieces, work.parts, DROPPED)
    files = [(piece.name, piece.key) for piece in one_per_file(pieces)]
    _ = (
        pipeline
        | "All files" >> beam.Create([files])
        | stage("Plan", work.plan, beam.pvalue.AsList(recorded))
        | "Spread shards" >> beam.Reshuffle()
        | stage("Write", work.write_shard)
    )


def finish(corpus: Corpus, work: "PrepareWork", pieces: list[Piece]) -> PrepareReport:
    """Writes the `meta.json` of both sides. Raises `UserError` if there is no document."""
    corpus.report = read_reports(pieces, work.parts)
    planned = work.parts.record(_PLANNED)
    metas = {side: work.settings.new_meta() for side in SIDES}
    for side, count in planned["shards"].items():
        for record in work.parts.records(_record_name(side, number) for number in range(count)):
            add_shard(metas[side], record["shard"], record["counts"])
    if not any(meta["documents"] for meta in metas.values()):
        remove_folder(work.parts.folder)
        if not corpus.report.documents:
            raise no_documents(len(one_per_file(pieces)), corpus.report, corpus.config)
    left_out = planned["left_out"]
    summary = PrepareReport.of(metas, {DUPLICATE: left_out[DUPLICATE]}, left_out)
    for side, meta in metas.items():
        work.settings.finish_meta(meta, corpus)
        write_json(join(work.folder, side, "meta.json"), meta)
    return summary


class Segment(NamedTuple):
    """Consecutive documents of a shard, all from one part: int64 `places` [documents] in it."""

    part: PartName
    places: np.ndarray


class Shard(NamedTuple):
    """The plan of a shard.

    Attributes:
        side: `"train"` or `"validation"`.
        number: counted from 0 on each side.
        segments: its documents, in order.
    """

    side: str
    number: int
    segments: list[Segment]


class _Document(NamedTuple):
    part: PartName
    place: int
    size: int


class ShardPlan:
    """Plans which documents each shard contains: the same shards, in the same order, as with a single process.

    The sizes of one part are read at a time, so that memory does not grow with the corpus.

    Args:
        parts: the files; duplicates must have been recorded.
        settings: how documents are divided into sides and shards.

    Attributes:
        left_out: the numbers of duplicates, `empty_documents` and `empty_sentences`, which are in no shard; complete
            once `shards` has been exhausted.
    """

    def __init__(self, parts: PartFiles, settings: ShardSettings):
        self._parts = parts
        self._share = settings.validation_share
        self._token_bytes = settings.token_bytes
        self._sides = {side: _ShardsOfSide(side, settings.shard_megabytes) for side in SIDES}
        self.left_out: Counter[str] = Counter()

    def shards(self, names: Iterable[PartName]) -> Iterator[Shard]:
        """Iterates over the shards of all parts, given in the order of the corpus; each side's shards are in order."""
        split = SideSplit[_Document](self._share)
        for name in names:
            with self._parts.open_part(name) as part:
                hashes, token_counts, document_lengths, empty_sentences = part.header()
            sizes = shard_bytes(token_counts, document_lengths, self._token_bytes)
            dropped = self._parts.places(DROPPED, name)
            kept = np.delete(np.arange(len(hashes)), dropped)
            self.left_out[DUPLICATE] += len(dropped)
            self.left_out["empty_documents"] += int((sizes[kept] == 0).sum())
            self.left_out["empty_sentences"] += int(empty_sentences[kept].sum())
            if split.has_both:
                held_out = is_validation_hash(hashes[kept], self._share)
                for side, places in ((TRAIN, kept[~held_out]), (VALIDATION, kept[held_out])):
                    yield from self._sides[side].add(name, places, sizes[places])
            else:
                documents = map(_Document, repeat(name), kept.tolist(), sizes[kept].tolist())
                added = map(split.add, hashes[kept].tolist(), documents)
                yield from self._add_each(chain.from_iterable(added))
        yield from self._add_each(split.rest())
        for shards in self._sides.values():
            yield from shards.rest()

    def _add_each(self, documents: Iterable[tuple[_Document, bool]]) -> Iterator[Shard]:
        """Adds documents that may be of different parts."""
        by_side: dict[str, list[_Document]] = {side: [] for side in SIDES}
        for document, held_out in documents:
            by_side[VALIDATION if held_out else TRAIN].append(document)
        for side, of_side in by_side.items():
            for part, together in groupby(of_side, key=lambda document: document.part):
                places, sizes = np.array([(document.place, document.size) for document in together]).T
                yield from self._sides[side].add(part, places, sizes)


class _ShardsOfSide:
    """Cuts one side's documents into shards."""

    def __init__(self, side: str, shard_megabytes: float):
        self._side = side
        self._cuts = ShardCuts(shard_megabytes)
        self._number = 0
        self._segments: list[Segment] = []

    def add(self, part: PartName, places: np.ndarray, sizes: np.ndarray) -> Iterator[Shard]:
        """Adds documents of a part with these sizes; yields the shards that are full."""
        first = 0
        for last in self._cuts.after(sizes):
            self._segments.append(Segment(part, places[first:last]))
            yield self._shard()
            first = last
        if first < len(places):
            self._segments.append(Segment(part, places[first:]))

    def rest(self) -> Iterator[Shard]:
        """Yields the last shard, unless it is empty."""
        if self._cuts.pending:
            yield self._shard()

    def _shard(self) -> Shard:
        shard = Shard(self._side, self._number, self._segments)
        self._number += 1
        self._segments = []
        return shard


@dataclass(frozen=True)
class PrepareWork:
    """The tasks of the workers, sent to each of them. Nothing here depends on Apache Beam.

    Attributes:
        settings: how documents are tokenized and divided into sides and shards.
        reading: how the text is read and filtered.
        folder: the folder with the parts, in which the shards are written.
    """

    settings: ShardSettings
    reading: CorpusConfig
    folder: str

    @property
    def parts(self) -> PartFiles:
        return PartFiles(self.folder)

    def tokenize(self, piece: Piece) -> Iterator[Hashes]:
        """Writes the parts of a piece, and its record. Yields the hashes of each part's documents."""
        start_tensorflow()
        parts = self.parts
        record = parts.record(piece.name)
        if record is None:
            report, blocks = CorpusReport(), 0
            for number, documents in read_clean_blocks(piece, report, self.reading, parts):
                blocks = number + 1
                if piece.has(number) and not parts.has_part(piece.part(number)):
                    parts.write_part(piece.part(number), text_hashes(documents), self._tokenized(documents))
            record = reading_record(blocks, report)
            parts.write_record(piece.name, record)
        for number in filter(piece.has, range(record["blocks"])):
            with parts.open_part(piece.part(number)) as part:
                hashes = part.hashes()
            yield Hashes.of(piece, number, hashes)

    def plan(self, files: Sequence[tuple[str, str]], _recorded: object = None) -> Iterator[Shard]:
        """Yields the plan of each shard, and records the number of shards and what was left out.

        Args:
            files: (name of its first piece, key) of each file in the order of the corpus.
            _recorded: makes Beam wait until the duplicates are in their files.
        """
        parts = self.parts
        records = parts.records(name for name, _ in files)
        names = [(key, block) for (_, key), record in zip(files, records) for block in range(record["blocks"])]
        plan, shards = ShardPlan(parts, self.settings), dict.fromkeys(SIDES, 0)
        for shard in plan.shards(names):
            shards[shard.side] += 1
            yield shard
        parts.write_record(_PLANNED, {"shards": shards, "left_out": plan.left_out})

    def write_shard(self, shard: Shard) -> None:
        """Writes the files of a shard, and a record of its values for `meta.json`."""
        parts, name = self.parts, _record_name(shard.side, shard.number)
        if parts.record(name) is not None:
            return
        documents = []
        for segment in shard.segments:
            with parts.open_part(segment.part) as part:
                documents.append(part.documents(segment.places))
        entry, counts = write_shard(
            join(self.folder, shard.side),
            shard_name(shard.number),
            documents,
            self.settings.new_meta(),
            self.settings.tokenizer.vocabulary.unk_id,
            parts.folder,
        )
        parts.write_record(name, {"shard": entry, "counts": counts})

    def _tokenized(self, documents: list[str]) -> TokenizedDocuments:
        # Filters may have left no document of a block.
        batches = list(groups(documents, len, BATCH_CHARACTERS)) or [[]]
        return TokenizedDocuments.joined([self.settings.tokenizer(batch) for batch in batches])


def _record_name(side: str, number: int) -> str:
    return f"{side}-{shard_name(number)}"
