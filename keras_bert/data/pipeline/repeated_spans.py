"""Finds the repeated spans of a corpus on Apache Beam, as `data.corpus.repeated_spans` does in one process."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from keras_bert.config.corpus import CorpusConfig
from keras_bert.data.pipeline.beam_steps import FindDuplicates
from keras_bert.data.pipeline.duplicates import in_buckets
from keras_bert.data.pipeline.parts import PartFiles
from keras_bert.data.pipeline.pieces import Piece, bucket_count
from keras_bert.data.pipeline.runners import Runner, in_worker
from keras_bert.data.pipeline.span_work import REPEATED, hash_spans
from keras_bert.extras import import_extra

if TYPE_CHECKING:
    import apache_beam as beam
else:
    beam = import_extra("apache_beam", "--runner")

_FOUND = "spans"  # The record that all have been found.


def find_repeated_spans(runner: Runner, pieces: list[Piece], config: CorpusConfig, parts: PartFiles) -> None:
    """Records in `parts` which spans are repeated, if `config` asks for their removal. It reads the whole text.

    Raises:
        UserError: a worker could not read or write a file, which the message names.
    """
    if not config.filters.repeated_spans or parts.record(_FOUND):
        return
    with runner.pipeline() as pipeline:
        _ = (
            pipeline
            | "Pieces" >> beam.Create([tuple(piece) for piece in pieces])
            | "Spread pieces" >> beam.Reshuffle()
            | "Hash spans" >> beam.ParDo(_HashSpans(config, bucket_count(pieces)))
            | "By hash" >> beam.GroupByKey()
            | "Find repeated" >> beam.ParDo(FindDuplicates())
            | "By block" >> beam.GroupByKey()
            | "Record repeated" >> beam.ParDo(_Record(parts))
        )
    parts.write_record(_FOUND, True)


class _HashSpans(beam.DoFn):
    def __init__(self, config: CorpusConfig, buckets: int):
        self.config = config
        self.buckets = buckets

    @in_worker
    def process(self, piece: Any) -> Iterator[Any]:
        for hashes in hash_spans(Piece(*piece), self.config):
            yield from in_buckets(hashes, self.buckets)


class _Record(beam.DoFn):
    def __init__(self, parts: PartFiles):
        self.parts = parts

    @in_worker
    def process(self, element: Any) -> Iterator[Any]:
        (source, block), places = element
        self.parts.write_places(REPEATED, source, block, places)
        yield from ()
