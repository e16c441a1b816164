"""Embeds a file of texts of any size into an .npz, a window of texts at a time."""

import contextlib
import dataclasses
from collections.abc import Iterator

import numpy as np

from keras_bert.data.tables.rows import Row
from keras_bert.data.tables.tables import read_texts
from keras_bert.errors import UserError
from keras_bert.inference.text_embedding import TextEmbedder
from keras_bert.tasks.answer_files import STANDARD_STREAM
from keras_bert.tasks.examples.labels import BadCell, check_text
from keras_bert.tasks.examples.windows import windows
from keras_bert.tasks.npz_writing import NpzWriter
from keras_bert.tasks.vector_index import VectorIndex
from keras_bert.terminal_bar import terminal_bar

LONGEST_TEXT = 1_000_000  # Characters.
# Small enough for the vectors of a window to fit in memory, even with one vector per piece.
_WINDOW_CHARACTERS = 1 << 18


@dataclasses.dataclass
class EmbeddingReport:
    """What was written.

    Attributes:
        texts: how many texts.
        cut: how many of them were longer than `max_length` tokens.
        first_cut: where the first of those is, or None.
        shape: the shape of the array `embeddings`.
    """

    texts: int = 0
    cut: int = 0
    first_cut: str | None = None
    shape: tuple[int, ...] = ()


def embed_file(
    embedder: TextEmbedder,
    source: str,
    output: str,
    index: str | None = None,
    column: str = "text",
    format: str | None = None,
) -> EmbeddingReport:
    """Writes the vectors of each text of a file.

    `output` holds `embeddings`, float32 [texts, width], in the order of the texts. With pooling `tokens` it holds
    `embeddings` [pieces, hidden]; the id of each piece, `pieces` int32; its position in the text in code points,
    `starts` and `ends` int32; and the first piece of each text, `rows` int64 [texts + 1].

    Args:
        embedder: computes the vectors.
        source: a table, or a UTF-8 file with one text per line, also .gz, .bz2, .xz or .zst; or "-" for stdin; see
            `is_table`. An empty line is an empty text, [CLS] [SEP].
        output: the .npz to write, which appears when it is complete.
        index: a nearest-neighbour index of the vectors to write too, see `VectorIndex`; not for pooling `tokens`.
        column, format: the column of the texts in a table, and its format; see `Reading`.

    Raises:
        UserError: the source is empty or cannot be read to its end, or a text is longer than `LONGEST_TEXT`.
    """
    done = EmbeddingReport()
    with (
        NpzWriter(output) as arrays,
        VectorIndex(index) if index else contextlib.nullcontext() as neighbours,
        terminal_bar("Embedded", "texts") as bar,
    ):
        pieces = 0
        for rows in windows(_rows(source, column, format), _WINDOW_CHARACTERS, lambda row: len(row.cells[0])):
            window = [row.cells[0] for row in rows]
            embedded = embedder(window)
            arrays.append("embeddings", embedded.vectors)
            if neighbours:
                neighbours.append(embedded.vectors)
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
        done.shape = arrays.shape("embeddings")
    return done


def _rows(source: str, column: str, format: str | None) -> Iterator[Row]:
    """Rows of one cell, a text that is not too long."""
    for row in read_texts(source, (column,), format, options="--text COLUMN"):
        try:
            text = check_text(row.cells[0])
        except BadCell as problem:
            raise UserError(f"{row.place}: {problem}.") from None
        if len(text) > LONGEST_TEXT:
            raise UserError(
                f"{row.place}: needs a text of at most {LONGEST_TEXT:,} characters. Received: {len(text):,} or more. "
                "Give one text a line."
            )
        yield row
