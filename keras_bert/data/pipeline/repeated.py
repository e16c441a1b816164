"""Finds repeated documents or spans of sentences, by their hashes, in a corpus that many workers read."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from keras_bert.config.corpus import CorpusConfig
from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.repeated_spans import remove_repeated_spans, span_hashes
from keras_bert.data.pipeline.parts import PartFiles, PartName
from keras_bert.data.pipeline.pieces import Piece, one_per_file, read_blocks
from keras_bert.data.pipeline.runners import Runner, spread, stage
from keras_bert.text.sentences import split_sentences

_REPEATED = "repeated"  # The places of a block's repeated spans among all of its spans.
_HASHED_BYTES_PER_BUCKET = 1_000_000_000  # Of text. A worker sorts the hashes of a bucket in memory.
_FEWEST_BUCKETS, _MOST_BUCKETS = 4, 1024


class Hashes(NamedTuple):
    """The hashes of some documents, or spans, of one part.

    Attributes:
        source: the place of the part's file in the corpus.
        places: int64 [documents], their places in the part, ascending.
        hashes: uint64 [documents].
    """

    source: int
    part: PartName
    places: np.ndarray
    hashes: np.ndarray

    @classmethod
    def of(cls, piece: Piece, block: int, hashes: np.ndarray) -> "Hashes":
        """All hashes of a block."""
        return cls(piece.source, piece.part(block), np.arange(len(hashes)), hashes)


def bucket_count(pieces: Iterable[Piece]) -> int:
    """The number of buckets in which the hashes of a corpus are compared."""
    size = sum(piece.size for piece in one_per_file(pieces))
    return min(max(size // _HASHED_BYTES_PER_BUCKET, _FEWEST_BUCKETS), _MOST_BUCKETS)


def in_buckets(buckets: int, part: Hashes) -> Iterator[tuple[int, Hashes]]:
    """Yield `(bucket, hashes)` for a part's hashes; equal hashes have the same bucket, whatever their part."""
    numbers = (part.hashes % np.uint64(buckets)).astype(np.int64)
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(buckets), side="right")
    for bucket, chosen in enumerate(np.split(order, ends[:-1])):
        if len(chosen):
            yield bucket, part._replace(places=part.places[chosen], hashes=part.hashes[chosen])


def find_repeated(bucket: tuple[int, Iterable[Hashes]]) -> Iterator[tuple[PartName, np.ndarray]]:
    """Finds the hashes in a bucket that occurred earlier in the corpus.

    Args:
        bucket: its number, and the hashes of parts in any order, each part once.

    Yields: `(part, places)` for each part with repeated ones; places are int64 [repeated], ascending.
    """
    parts = sorted(bucket[1], key=lambda hashes: (hashes.source, hashes.part))
    values = np.concatenate([part.hashes for part in parts])
    order = np.argsort(values, kind="stable")
    is_again = np.zeros(len(values), bool)
    is_again[order[1:]] = values[order[1:]] == values[order[:-1]]
    ends = np.cumsum([len(part.hashes) for part in parts])
    for part, again in zip(parts, np.split(is_again, ends[:-1])):
        if again.any():
            yield part.part, part.places[again]


def record_repeated(hashes: Any, pieces: list[Piece], parts: PartFiles, what: str) -> Any:
    """Adds to a pipeline the search for repeated hashes, whose places are recorded in `parts` under `what`.

    Args:
        hashes: the collection of the `Hashes` of all parts.

    Returns: a collection that is complete once all places are recorded.
    """
    import apache_beam as beam

    def record(repeated: tuple[PartName, Iterable[np.ndarray]]) -> Iterator[PartName]:
        parts.write_places(what, *repeated)
        yield repeated[0]

    return (
        hashes
        | stage("Divide hashes", partial(in_buckets, bucket_count(pieces)))
        | "By hash" >> beam.GroupByKey()
        | stage("Find repeated", find_repeated)
        | "By part" >> beam.GroupByKey()
        | stage("Record repeated", record)
    )


def find_all_repeated(
    runner: Runner,
    pieces: list[Piece],
    hashes: Callable[[Piece], Iterator[Hashes]],
    parts: PartFiles,
    what: str,
    shown: AbstractContextManager[None] | None = None,
) -> None:
    """Runs `record_repeated` on the hashes of all pieces, unless it is done; the pipeline reads the whole text.

    `shown`: see `Runner.pipeline`.

    Raises:
        UserError: a worker could not read or write a file, which the message names.
    """
    if not parts.record(f"all-{what}"):
        with runner.pipeline(shown) as pipeline:
            record_repeated(spread(pipeline, pieces) | stage("Hash", hashes), pieces, parts, what)
        parts.write_record(f"all-{what}", True)


def find_repeated_spans(runner: Runner, pieces: list[Piece], config: CorpusConfig, parts: PartFiles) -> None:
    """Records in `parts` which spans are repeated, if `config` asks for their removal."""
    if config.filters.repeated_spans:
        find_all_repeated(runner, pieces, partial(_hash_spans, config), parts, _REPEATED)


def _hash_spans(config: CorpusConfig, piece: Piece) -> Iterator[Hashes]:
    length = config.filters.repeated_spans
    for number, documents in read_blocks(piece, CorpusReport(), config):
        if piece.has(number):
            hashes = [value for text in documents for value in span_hashes(split_sentences(text), length)]
            yield Hashes.of(piece, number, np.array(hashes, np.uint64))


def read_clean_blocks(
    piece: Piece, report: CorpusReport, config: CorpusConfig, parts: PartFiles
) -> Iterator[tuple[int, list[str]]]:
    """`read_blocks` without the repeated spans that are recorded in `parts`, if `config` asks for their removal."""
    filters = config.filters
    for number, documents in read_blocks(piece, report, config):
        if filters.repeated_spans:
            repeated = parts.places(_REPEATED, piece.part(number))
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
