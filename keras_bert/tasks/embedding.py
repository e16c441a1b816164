"""Embeds a file of texts of any size, a window of texts at a time."""

import contextlib
import dataclasses
import functools
from collections.abc import Iterator

import numpy as np

from keras_bert.config.inference import FLOAT32
from keras_bert.core.errors import UserError
from keras_bert.core.terminal_bar import terminal_bar
from keras_bert.data.tables.rows import Row
from keras_bert.data.tables.tables import read_texts, source_files
from keras_bert.data.windows import windows
from keras_bert.inference.sparse_embedding import SparseEmbedder
from keras_bert.inference.text_embedding import Embedder
from keras_bert.inference.texts import require_numbers
from keras_bert.tasks.answer_files import STANDARD_STREAM
from keras_bert.tasks.labels import bad_cell_at, check_text
from keras_bert.tasks.vector_files import NpzWriter, SparseSink, VectorIndex, VectorSink

LONGEST_TEXT = 1_000_000  # Characters.
# Small enough for the vectors of a window to fit in memory, even with one vector per piece.
_WINDOW_CHARACTERS = 1 << 18


@dataclasses.dataclass
class EmbeddingReport:
    """A summary of what `embed_file` wrote.

    Attributes:
        texts: the number of texts.
        cut: how many of them were truncated, being longer than `max_length` tokens.
        first_cut: the place of the first truncated text, or None.
        shape: the shape of the array of all vectors.
        dtype: its dtype.
    """

    texts: int = 0
    cut: int = 0
    first_cut: str | None = None
    shape: tuple[int, ...] = ()
    dtype: str = FLOAT32


def embed_file(
    embedder: Embedder,
    source: str,
    output: str,
    index: str | None = None,
    column: str = "text",
    format: str | None = None,
    precision: str = FLOAT32,
    size: int | None = None,
    ranges: np.ndarray | None = None,
) -> EmbeddingReport:
    """Writes the vectors of each text of a file.

    `output` holds `embeddings`, float32 [texts, width], in the order of the texts. With pooling `tokens` it holds
    `embeddings` [pieces, hidden]; the id of each piece, `pieces` int32; its position in the text in code points,
    `starts` and `ends` int32; and the first piece of each text, `rows` int64 [texts + 1]. With another precision
    `embeddings` are float16, int8 or uint8, as `quantize_vectors` returns them, and int8 comes with `ranges`. Sparse
    vectors are written by `SparseSink` instead, without an index.

    Args:
        embedder: computes the vectors.
        source: a table, or a UTF-8 file with one text per line, also .gz, .bz2, .xz or .zst; or "-" for stdin; see
            `is_table`. An empty line is an empty text, [CLS] [SEP].
        output: the .npz to write, which appears when it is complete.
        index: where to write a nearest-neighbour index too, see `VectorIndex`; not for pooling `tokens`.
        column, format: the column of the texts in a table, and its format; see `Reading`.
        precision, size, ranges: see `quantize_vectors`; by default the ranges are those of all vectors of the file.

    Raises:
        UserError: the source is empty or cannot be read to its end, a text is longer than `LONGEST_TEXT`, or vectors
            are not finite.
    """
    done = EmbeddingReport()
    with (
        NpzWriter(output) as arrays,
        VectorIndex(index) if index else contextlib.nullcontext() as neighbours,
        terminal_bar("Embedded", "texts", read=source_files(source)) as bar,
    ):
        is_sparse = isinstance(embedder, SparseEmbedder)
        sink: VectorSink | SparseSink
        if is_sparse:
            sink = SparseSink(arrays, size)
        else:
            sink = VectorSink(arrays, neighbours, precision, size, ranges)
        pieces = 0
        for rows in windows(_rows(source, column, format), lambda row: len(row.cells[0]), _WINDOW_CHARACTERS):
            window = [row.cells[0] for row in rows]
            embedder.after_batch = functools.partial(bar.partly, n=len(window))
            embedded = embedder(window)
            vectors = embedded.vectors
            require_numbers([np.asarray(vectors.data)] if is_sparse else vectors, "vectors")
            sink.append(vectors)
            if embedded.starts is not None:
                for name in ("pieces", "starts", "ends"):
                    arrays.append(name, getattr(embedded, name))
                # The end of one window's last text is the start of the next window's first.
                arrays.append("rows", pieces + embedded.row_splits[(1 if done.texts else 0) :])
                pieces += embedded.row_splits[-1]
            if embedded.is_cut.any():
                done.first_cut = done.first_cut or rows[int(np.argmax(embedded.is_cut))].place
                done.cut += int(embedded.is_cut.sum())
            done.texts += len(window)
            bar.update(len(window))
        if not done.texts:
            name = "stdin" if source == STANDARD_STREAM else source
            raise UserError(f"{name}: needs at least one text. Received: none. Give one text a line, or a table.")
        sink.finish()
        done.shape, done.dtype = sink.written
    return done


def _rows(source: str, column: str, format: str | None) -> Iterator[Row]:
    """Yields rows of one cell, a text of at most `LONGEST_TEXT` characters."""
    for row in read_texts(source, (column,), format, options="--text COLUMN"):
        with bad_cell_at(row.place):
            text = check_text(row.cells[0])
        if len(text) > LONGEST_TEXT:
            raise UserError(
                f"{row.place}: needs a text of at most {LONGEST_TEXT:,} characters. Received: {len(text):,} or more. "
                "Give one text a line."
            )
        yield row
