"""`prepare` as an Apache Beam pipeline: the shards of `data.shards.prepare`, byte for byte, made by many workers.

1. Tokenize: each worker reads files and writes their documents, tokenized, into parts of some megabytes.
2. Deduplicate: the hashes of all documents are brought together, in buckets.
3. Plan: one worker reads the sizes of all documents and decides where shards end.
4. Write: each shard is put together from its parts.

The text itself never passes through the runner, which holds hashes and plans only.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath, join, make_folder, remove_file, remove_folder
from keras_bert.core.imports import import_extra
from keras_bert.core.whole_files import write_json
from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.documents import Corpus, no_documents
from keras_bert.data.corpus.held_out import DUPLICATE, SIDES
from keras_bert.data.pipeline.duplicates import FindDuplicates, in_buckets
from keras_bert.data.pipeline.parts import PartFiles
from keras_bert.data.pipeline.pieces import (
    Piece,
    bucket_count,
    divide,
    identities,
    one_per_file,
    prepare_tfds,
    report_of,
)
from keras_bert.data.pipeline.prepare_work import METAS, SUMMARY, PrepareWork
from keras_bert.data.pipeline.repeated import find_repeated_spans
from keras_bert.data.pipeline.runners import Runner, in_worker
from keras_bert.data.shards.document_tokenizer import DocumentTokenizer
from keras_bert.data.shards.prepare import NO_DOCUMENTS, NO_TOKEN, PrepareReport, prepare_settings
from keras_bert.data.shards.prepared_folder import prepared_folder
from keras_bert.data.shards.shard_format import check_shard_size
from keras_bert.data.shards.tokenizer_processes import start_tensorflow
from keras_bert.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    import apache_beam as beam
else:
    beam = import_extra("apache_beam", "--runner")


def prepare(
    corpus: Corpus,
    vocabulary: Vocabulary,
    lower_case: bool,
    folder: StrPath,
    validation_share: float,
    runner: Runner,
    shard_megabytes: float = 16.0,
    word_marks: str | None = None,
    phrases: Sequence[str] = (),
    phrase_tags: Sequence[str] = (),
    report: Callable[[str], object] | None = None,
) -> PrepareReport:
    """Writes what `data.shards.prepare.prepare` writes for the same arguments, by a runner of Apache Beam.

    If it is started again with the same arguments after a failure, finished parts and shards are kept; with other files
    in the corpus, the parts of the same ones.

    Args:
        corpus: the text; its `report` is filled in. Workers read its files by the same paths.
        vocabulary, lower_case, folder, validation_share, shard_megabytes, word_marks, phrases, phrase_tags: as there.
            Workers write `folder` by the same path.
        runner: runs the pipeline.
        report: receives lines of text on what is being done.

    Returns:
        A report on the whole result.

    Raises:
        UserError: as there; or a worker could not read or write a file, which the message names.
    """
    check_shard_size(shard_megabytes)
    report = report or (lambda line: None)
    tokenizer = DocumentTokenizer(vocabulary, lower_case, word_marks, tuple(phrases), tuple(phrase_tags))
    prepare_tfds(corpus, runner)
    settings = prepare_settings(tokenizer, validation_share, shard_megabytes)
    settings = {"runner": "Beam", **settings, "reading": corpus.settings() or None}
    with prepared_folder(folder, vocabulary, settings, report) as (work, check):
        pieces, parts = divide(corpus), PartFiles(work.folder)
        sources = identities(pieces, corpus)
        for side in SIDES:
            if not parts.is_for(sources):
                remove_folder(join(work.folder, side))
            make_folder(join(work.folder, side))
            remove_file(join(work.folder, side, "meta.json"))
        work.save()
        if parts.keep_for(sources):
            report(f"Resuming in {work.folder}: finished parts and shards are kept.")
        preparation = PrepareWork(tokenizer, corpus.config, work.folder, validation_share, shard_megabytes)
        find_repeated_spans(runner, pieces, corpus.config, parts)
        with runner.pipeline(parts.shown("Tokenized", pieces)) as pipeline:
            _build(pipeline, preparation, pieces)
        check()
        corpus.report, summary = _reports(parts)
        if not summary.documents.total():
            remove_folder(parts.folder)
            if corpus.report.documents:
                raise UserError(NO_DOCUMENTS)
            raise no_documents(len(sources), corpus.report, corpus.config)
        for side, meta in parts.record(METAS).items():
            if values := corpus.record():
                meta["corpus"] = values
            write_json(join(work.folder, side, "meta.json"), meta)
        return summary


def _build(pipeline: Any, work: PrepareWork, pieces: list[Piece]) -> None:
    records = (
        pipeline
        | "Pieces" >> beam.Create([tuple(piece) for piece in pieces])
        | "Spread pieces" >> beam.Reshuffle()
        | "Tokenize" >> beam.ParDo(_Tokenize(work))
    )
    duplicates = (
        records
        | "Hashes" >> beam.ParDo(_ReadHashes(work, bucket_count(pieces)))
        | "By hash" >> beam.GroupByKey()
        | "Find duplicates" >> beam.ParDo(FindDuplicates())
        | "By part" >> beam.GroupByKey()
        | "Record duplicates" >> beam.ParDo(_RecordDuplicates(work))
    )
    _ = (
        records
        | "All pieces" >> beam.combiners.ToList()
        | "Plan" >> beam.ParDo(_Plan(work), beam.pvalue.AsList(duplicates))
        | "Spread shards" >> beam.Reshuffle()
        | "Write" >> beam.ParDo(_WriteShard(work))
        | "All shards" >> beam.combiners.ToList()
        | "Finish" >> beam.ParDo(_Finish(work))
    )


# Elements are annotated as Any, because Beam would choose their encoding by other annotations.
class _Working(beam.DoFn):
    def __init__(self, work: PrepareWork):
        self.work = work


class _Tokenize(_Working):
    def setup(self) -> None:
        start_tensorflow()

    @in_worker
    def process(self, piece: Any) -> Iterator[Any]:
        yield piece, self.work.tokenize(Piece(*piece))


class _ReadHashes(_Working):
    def __init__(self, work: PrepareWork, buckets: int):
        super().__init__(work)
        self.buckets = buckets

    @in_worker
    def process(self, element: Any) -> Iterator[Any]:
        piece, record = element
        for hashes in self.work.hashes(Piece(*piece), record["blocks"]):
            yield from in_buckets(hashes, self.buckets)


class _RecordDuplicates(_Working):
    @in_worker
    def process(self, element: Any) -> Iterator[Any]:
        self.work.record_duplicates(*element)
        yield element[0]


class _Plan(_Working):
    @in_worker
    def process(self, pieces: Any, duplicates: Any) -> Iterator[Any]:
        # The duplicates are in files; waiting for the list is what matters.
        yield from self.work.plan(one_per_file(pieces))


class _WriteShard(_Working):
    @in_worker
    def process(self, shard: Any) -> Iterator[Any]:
        yield self.work.write_shard(shard)


class _Finish(_Working):
    @in_worker
    def process(self, records: Any) -> Iterator[Any]:
        self.work.finish(records)
        yield from ()


def _reports(parts: PartFiles) -> tuple[CorpusReport, PrepareReport]:
    """What the records of finished work tell: of the reading, and of the shards."""
    summary, report = parts.record(SUMMARY), PrepareReport()
    for side, meta in parts.record(METAS).items():
        for count in ("documents", "sentences", "tokens", "unknown_tokens"):
            getattr(report, count)[side] = meta[count]
        if "phrase_tokens" in meta:
            report.phrase_tokens[side] = meta["phrase_tokens"]
    totals = summary["totals"]
    report.dropped += Counter({DUPLICATE: totals["duplicates"], NO_TOKEN: totals["empty"]})
    report.empty_sentences = totals["empty_sentences"]
    return report_of(summary["files"]), report
