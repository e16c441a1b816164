"""Embeds a file of texts of any size into an .npz, a window of texts at a time."""

import contextlib
import dataclasses
import functools
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from keras_bert.core.errors import UserError
from keras_bert.core.files import is_folder, is_remote, make_folder, parent
from keras_bert.core.imports import import_extra
from keras_bert.core.terminal_bar import terminal_bar
from keras_bert.core.whole_files import atomic_write
from keras_bert.data.tables.rows import Row
from keras_bert.data.tables.tables import read_texts, source_files
from keras_bert.inference.text_embedding import TextEmbedder
from keras_bert.tasks.answer_files import STANDARD_STREAM
from keras_bert.tasks.labels import BadCell, check_text
from keras_bert.tasks.windows import windows

_COPIED_AT_ONCE = 1 << 22  # Bytes.


class NpzWriter:
    """Writes arrays that grow row by row, without holding more in memory than what is being appended.

    An array's length comes before its rows in the file, so the rows wait in unnamed files: beside the .npz or, if that
    is in a store, in this machine's temporary folder. The complete .npz appears when the `with` block ends without an
    error.

    Args:
        path: the file to write; its folder is created.

    Raises:
        UserError: the path is a folder.
    """

    def __init__(self, path: str):
        self._path = path
        self._folder = None if is_remote(path) else parent(path)
        self._streams: dict[str, IO[bytes]] = {}
        self._dtypes: dict[str, np.dtype] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        if is_folder(path):
            raise UserError(f"{path}: needs a file to write. Received: a folder. Name a file in it.")
        make_folder(parent(path))

    def __enter__(self) -> "NpzWriter":
        self._files = contextlib.ExitStack()
        return self

    def append(self, name: str, rows: np.ndarray) -> None:
        """Adds rows [rows, …] to the array `name`; all calls must use the same dtype and the same row shape."""
        if name not in self._streams:
            self._streams[name] = self._files.enter_context(tempfile.TemporaryFile(dir=self._folder))
            self._dtypes[name] = rows.dtype
            self._shapes[name] = (0, *rows.shape[1:])
        self._streams[name].write(np.ascontiguousarray(rows).data)
        count, *row_shape = self._shapes[name]
        self._shapes[name] = (count + len(rows), *row_shape)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of the array `name` so far."""
        return self._shapes[name]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._files:
            if kind is None:
                with atomic_write(self._path, "wb") as stream:
                    self._write(stream)

    def _write(self, stream: IO[bytes]) -> None:
        with zipfile.ZipFile(stream, "w") as archive:
            for name, rows in self._streams.items():
                descr = npy.dtype_to_descr(self._dtypes[name])
                header = {"descr": descr, "fortran_order": False, "shape": self._shapes[name]}
                rows.seek(0)
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    npy.write_array_header_1_0(member, header)
                    shutil.copyfileobj(rows, member, _COPIED_AT_ONCE)


class VectorIndex:
    """Collects vectors and writes their index, by cosine, when the `with` block ends without an error.

    The key of a vector is the number of the vectors before it.

    Raises:
        UserError: the package usearch is not installed.
    """

    def __init__(self, path: str) -> None:
        self._path, self._usearch, self._count = path, import_extra("usearch.index", "--index"), 0
        self._index: Any = None

    def __enter__(self) -> "VectorIndex":
        return self

    def append(self, vectors: np.ndarray) -> None:
        """Adds vectors float32 [texts, width]."""
        if self._index is None:
            self._index = self._usearch.Index(ndim=vectors.shape[1], metric="cos", dtype="f32")
        self._index.add(np.arange(self._count, self._count + len(vectors)), vectors)
        self._count += len(vectors)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None or self._index is None:
            return
        with tempfile.TemporaryDirectory() as folder, atomic_write(self._path, "wb") as stream:
            local = os.path.join(folder, "index")
            self._index.save(local)
            with open(local, "rb") as saved:
                while block := saved.read(1 << 22):
                    stream.write(block)


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
        terminal_bar("Embedded", "texts", read=source_files(source)) as bar,
    ):
        pieces = 0
        for rows in windows(_rows(source, column, format), lambda row: len(row.cells[0]), _WINDOW_CHARACTERS):
            window = [row.cells[0] for row in rows]
            embedder.after_batch = functools.partial(bar.partly, n=len(window))
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
