"""Embeds a file of texts of any size into an .npz, a window of texts at a time."""

import contextlib
import dataclasses
from collections.abc import Iterator

import numpy as np

from keras_bert.data.corpus.text_lines import Unreadable, read_lines, read_standard_input
from keras_bert.errors import UserError
from keras_bert.inference.text_embedding import TextEmbedder
from keras_bert.tasks.answer_files import STANDARD_STREAM
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
        first_cut: the line of the first of those, counted from 1, or None.
        shape: the shape of the array `embeddings`.
    """

    texts: int = 0
    cut: int = 0
    first_cut: int | None = None
    shape: tuple[int, ...] = ()


def embed_file(embedder: TextEmbedder, source: str, output: str, index: str | None = None) -> EmbeddingReport:
    """Writes the vectors of each line of a text file.

    `output` holds `embeddings`, float32 [texts, width], in the order of the lines. With pooling `tokens` it holds
    `embeddings` [pieces, hidden]; the id of each piece, `pieces` int32; its position in the line in code points,
    `starts` and `ends` int32; and the first piece of each text, `rows` int64 [texts + 1].

    Args:
        embedder: computes the vectors.
        source: a UTF-8 file with one text per line, also .gz, .bz2, .xz or .zst; or "-" for stdin. An empty line is an
            empty text, [CLS] [SEP].
        output: the .npz to write, which appears when it is complete.
        index: a nearest-neighbour index of the vectors to write too, see `VectorIndex`; not for pooling `tokens`.

    Raises:
        UserError: the source is empty or cannot be read to its end, or a line is longer than `LONGEST_TEXT`.
    """
    done = EmbeddingReport()
    with (
        NpzWriter(output) as arrays,
        VectorIndex(index) if index else contextlib.nullcontext() as neighbours,
        terminal_bar("Embedded", "texts") as bar,
    ):
        pieces = 0
        for window in windows(_texts(source), _WINDOW_CHARACTERS, len):
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
                done.first_cut = done.first_cut or done.texts + int(np.argmax(embedded.is_cut)) + 1
                done.cut += int(embedded.is_cut.sum())
            done.texts += len(window)
            bar.update(len(window))
        if not done.texts:
            raise UserError(f"{_name(source)}: needs at least one line of text. Received: none. Give one text a line.")
        done.shape = arrays.shape("embeddings")
    return done


def _texts(source: str) -> Iterator[str]:
    lines = read_standard_input() if source == STANDARD_STREAM else read_lines(source)
    try:
        for number, line in enumerate(lines, start=1):
            if len(line) > LONGEST_TEXT:
                raise UserError(
                    f"{_name(source)}: needs at most {LONGEST_TEXT:,} characters in a line. Received: {len(line):,} or "
                    f"more in line {number}. Give one text a line."
                )
            yield line
    except Unreadable as problem:
        where = f" in line {problem.line}" if problem.line else ""
        raise UserError(f"{_name(source)}: {problem}{where}. Give UTF-8 text, one text a line.") from None


def _name(source: str) -> str:
    return "stdin" if source == STANDARD_STREAM else source
