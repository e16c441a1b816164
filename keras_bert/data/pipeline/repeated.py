"""Finds on Apache Beam what occurs again in a corpus, by hashes, as `data.corpus` does in one process."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert.config.corpus import CorpusConfig
from keras_bert.core.imports import import_extra
from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.repeated_spans import remove_repeated_spans, span_hashes
from keras_bert.data.pipeline.duplicates import FindDuplicates, Hashes, in_buckets
from keras_bert.data.pipeline.parts import PartFiles
from keras_bert.data.pipeline.pieces import Piece, bucket_count, read_blocks
from keras_bert.data.pipeline.runners import Runner, in_worker
from keras_bert.text.sentences import split_sentences

REPEATED = "repeated"  # The spans of a block that are repeated, by their place among all of its spans.


def hash_spans(piece: Piece, config: CorpusConfig) -> Iterator[Hashes]:
    """The hashes of all spans of a piece, block by block."""
    length = config.filters.repeated_spans
    for number, documents in read_blocks(piece, CorpusReport(), config):
        if number in piece.numbers(number + 1):
            hashes = [value for text in documents for value in span_hashes(split_sentences(text), length)]
            yield Hashes(piece.source, number, np.arange(len(hashes)), np.array(hashes, np.uint64))


def read_clean_blocks(
    piece: Piece, report: CorpusReport, config: CorpusConfig, parts: PartFiles
) -> Iterator[tuple[int, list[str]]]:
    """`read_blocks` without the repeated spans that are recorded in `parts`, if `config` asks for that."""
    filters = config.filters
    for number, documents in read_blocks(piece, report, config):
        if filters.repeated_spans:
            repeated = parts.places(REPEATED, piece.source, number)
            if len(repeated):
                starts = _starts(documents, repeated, filters.repeated_spans)
                documents = list(remove_repeated_spans(documents, starts, filters, report))
        yield number, documents


def _starts(documents: list[str], repeated: np.ndarray, length: int) -> Iterator[list[int]]:
    """Yields, for each document of a block, the first sentences of its repeated spans; see `RepeatedSpans.starts`."""
    first = 0
    for text in documents:
        end = first + max(len(split_sentences(text)) - length + 1, 0)
        yield (repeated[slice(*np.searchsorted(repeated, [first, end]))] - first).tolist()
        first = end


if TYPE_CHECKING:
    import apache_beam as beam
else:
    beam = import_extra("apache_beam", "--runner")


def find_repeated_spans(runner: Runner, pieces: list[Piece], config: CorpusConfig, parts: PartFiles) -> None:
    """Records in `parts` which spans are repeated, if `config` asks for their removal; see `find_repeated`."""
    if config.filters.repeated_spans:
        find_repeated(runner, pieces, partial(hash_spans, config=config), parts, REPEATED)


def find_repeated(
    runner: Runner,
    pieces: list[Piece],
    hashes: Callable[[Piece], Iterator[Hashes]],
    parts: PartFiles,
    what: str,
    shown: AbstractContextManager[None] | None = None,
) -> None:
    """Records in `parts`, as the places of `what`, which hashes of a block occurred earlier in the corpus.

    It reads the whole text, unless an earlier start has recorded them.

    Args:
        hashes: gives the hashes of a piece, block by block.
        shown: see `Runner.pipeline`.

    Raises:
        UserError: a worker could not read or write a file, which the message names.
    """
    if parts.record(f"all-{what}"):
        return
    with runner.pipeline(shown) as pipeline:
        _ = (
            pipeline
            | "Pieces" >> beam.Create([tuple(piece) for piece in pieces])
            | "Spread pieces" >> beam.Reshuffle()
            | "Hash" >> beam.ParDo(_Hash(hashes, bucket_count(pieces)))
            | "By hash" >> beam.GroupByKey()
            | "Find repeated" >> beam.ParDo(FindDuplicates())
            | "By block" >> beam.GroupByKey()
            | "Record repeated" >> beam.ParDo(_Record(parts, what))
        )
    parts.write_record(f"all-{what}", True)


class _Hash(beam.DoFn):
    def __init__(self, hashes: Callable[[Piece], Iterator[Hashes]], buckets: int):
        self.hashes = hashes
        self.buckets = buckets

    @in_worker
    def process(self, piece: Any) -> Iterator[Any]:
        for hashes in self.hashes(Piece(*piece)):
            yield from in_buckets(hashes, self.buckets)


class _Record(beam.DoFn):
    def __init__(self, parts: PartFiles, what: str):
        self.parts = parts
        self.what = what

    @in_worker
    def process(self, element: Any) -> Iterator[Any]:
        (source, block), places = element
        self.parts.write_places(self.what, source, block, places)
        yield from ()
