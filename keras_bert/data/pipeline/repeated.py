"""Finds on Apache Beam what occurs again in a corpus, by hashes, as `data.corpus` does in one process."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from keras_bert.config.corpus import CorpusConfig
from keras_bert.data.pipeline.beam_steps import FindDuplicates
from keras_bert.data.pipeline.duplicates import Hashes, in_buckets
from keras_bert.data.pipeline.parts import PartFiles
from keras_bert.data.pipeline.pieces import Piece, bucket_count
from keras_bert.data.pipeline.runners import Runner, in_worker
from keras_bert.data.pipeline.span_work import REPEATED, hash_spans
from keras_bert.extras import import_extra

if TYPE_CHECKING:
    import apache_beam as beam
else:
    beam = import_extra("apache_beam", "--runner")


def find_repeated_spans(runner: Runner, pieces: list[Piece], config: CorpusConfig, parts: PartFiles) -> None:
    """Records in `parts` which spans are repeated, if `config` asks for their removal; see `find_repeated`."""
    if config.filters.repeated_spans:
        find_repeated(runner, pieces, partial(hash_spans, config=config), parts, REPEATED)


def find_repeated(
    runner: Runner, pieces: list[Piece], hashes: Callable[[Piece], Iterator[Hashes]], parts: PartFiles, what: str
) -> None:
    """Records in `parts`, as the places of `what`, which hashes of a block occurred earlier in the corpus.

    It reads the whole text, unless an earlier start has recorded them.

    Args:
        hashes: gives the hashes of a piece, block by block.

    Raises:
        UserError: a worker could not read or write a file, which the message names.
    """
    if parts.record(f"all-{what}"):
        return
    with runner.pipeline() as pipeline:
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
