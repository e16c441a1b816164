"""What workers do for `filters.repeated_spans`: hash spans of sentences, and remove all but the first."""

from collections.abc import Iterator

import numpy as np

from keras_bert.config.corpus import CorpusConfig
from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.repeated_spans import remove_repeated_spans, span_hashes
from keras_bert.data.pipeline.duplicates import Hashes
from keras_bert.data.pipeline.parts import PartFiles
from keras_bert.data.pipeline.pieces import Piece, read_blocks
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
