"""Lines of raw text and their documents, read in the graph and split into training and validation."""

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf

from keras_bert.config.pretraining import HUB_PREFIX, TFDS_PREFIX
from keras_bert.core.errors import UserError
from keras_bert.core.patterns import expand
from keras_bert.data.corpus.formats import PLAIN, format_of
from keras_bert.data.corpus.text_lines import (
    GZIP,
    Unreadable,
    beginning,
    binary,
    compression,
    read_chunks,
    require_whole_gzip,
)
from keras_bert.data.tables.tables import open_tfds_text
from keras_bert.text.characters import row_ids

# A simpler rule than in `text.sentences`, which is Python; sentences only mark where a row or a segment may end.
_STOP_BEFORE_CAPITAL = r"""([.!?…]["'”’»)\]]*)[ \t]+(["'“‘«(\[]*[\p{Lu}\p{N}])"""
_IDEOGRAPHIC_STOP = r"""([。！？｡]["'”’」』）】》〉)\]]*)"""


def split_lines(lines: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Splits lines [n] into sentences: (string [sentences], int32 [sentences], the line of each)."""
    sentences = tf.strings.split(break_sentences(lines), "\n")
    return sentences.values, row_ids(sentences.row_splits, tf.size(sentences.values))


def break_sentences(lines: tf.Tensor) -> tf.Tensor:
    """Lines [n] with a line break after each sentence."""
    lines = tf.strings.regex_replace(lines, _STOP_BEFORE_CAPITAL, "\\1\n\\2")
    return tf.strings.regex_replace(lines, _IDEOGRAPHIC_STOP, "\\1\n")


_LINES_AT_ONCE = 512
_BYTES_AT_ONCE, _LONGEST_LINE = 1 << 20, 1 << 16  # Tokenizing takes some 60 bytes of memory for each byte.
_FILES_AT_ONCE = 4
_SIDE_KEY = (20181011, 4805)
_SIDES = 2**30
_BLANK = r"[\s\v\x1c-\x1f\x{85}\pZ]*"  # What `str.strip` removes, such as the ideographic space.
_BYTE_ORDER_MARK = r"^\x{FEFF}"
_LONE_RETURN = re.compile(rb"\r(?![\r\n]|\Z)")  # TensorFlow drops every \r.


class RawLines:
    """Plain text in files, or a corpus of TensorFlow Datasets, as a `tf.data` pipeline without Python in it.

    A document ends at a blank line or the end of the file. In a TFDS corpus every example is a document. A hash of its
    first line decides which side a document is on, so a document that continues in the next chunk stays on its side,
    and documents with the same first line are on the same side.

    Args:
        names: the recipe's `data.files`: files, folders or globs (plain or .gz), or one `tfds:NAME[/CONFIG][:SPLIT]`.
        validation_share: share of documents held out, from 0 to 1.

    Attributes:
        names: as given, separated by commas, for messages.
        sources: how many files there are; 1 for a TFDS corpus.

    Raises:
        UserError: there are no files; a file has another format, or is a damaged .gz; there is no such corpus; or a
            name is one of the hub.
    """

    def __init__(self, names: Sequence[str], validation_share: float):
        self.names = ", ".join(names)
        self.validation_share = validation_share
        self._corpus = None
        if hub := next((name for name in names if name.startswith(HUB_PREFIX)), None):
            raise UserError(
                f"data.files: needs files or a TFDS corpus if data.source is text. Received: {hub}. Set "
                "data.source=files."
            )
        if any(name.startswith(TFDS_PREFIX) for name in names):
            if len(names) > 1:
                raise UserError(
                    "data.files: needs either files or a single TFDS corpus if data.source is text. "
                    f"Received: {self.names}. Give one of them."
                )
            self._corpus = open_tfds_text(names[0]).dataset()
            self.sources = 1
        else:
            paths = [os.fspath(path) for path in expand(names)]
            with ThreadPoolExecutor(_FILES_AT_ONCE) as threads:  # They decompress in parallel.
                compressions = list(threads.map(_checked_compression, paths))
            self._paths = tf.constant([os.fsencode(path) for path in paths])  # File names need not be UTF-8.
            self._compressions = tf.constant(compressions)
            self.sources = len(paths)

    @tf.autograph.experimental.do_not_convert  # AutoGraph would search for control flow for seconds; there is none.
    def chunks(self, validation: bool, order: tf.Tensor | None = None) -> tf.data.Dataset:
        """One pass over the text, in chunks of at most 512 lines and about a megabyte of one source.

        Args:
            validation: whether to read the held-out documents or the others.
            order: int64 [sources], the order in which to visit the files, four at a time; by default as given.

        The elements are (chunk number, int64 below 2**43, independent of `order`, ascending within a source; lines,
        string [n], without blank ones; documents, int64 [n], equal for lines of the same document). Lines of more than
        64 KiB are divided into their sentences.
        """
        order = tf.range(self.sources, dtype=tf.int64) if order is None else order

        def chunks_of(source: tf.Tensor) -> tf.data.Dataset:
            chunks = self._lines(source).batch(_LINES_AT_ONCE).flat_map(_of_bounded_size)
            # Whether a document continues into the chunk, whether it is held out, and the number of the last document.
            state = (tf.constant(False), tf.constant(False), source * 2**32)
            chunks = chunks.scan(state, lambda state, lines: self._part(state, lines, validation))
            return chunks.enumerate().map(lambda number, chunk: (source * 2**24 + number, *chunk))

        sources = tf.data.Dataset.from_tensor_slices(order)
        return sources.interleave(chunks_of, _FILES_AT_ONCE, 1, num_parallel_calls=_FILES_AT_ONCE, deterministic=True)

    def require_text(self, validation: bool) -> None:
        """Raises `UserError` if a side has no document; it reads all of the text only in that case."""
        chunks = self.chunks(validation).filter(lambda number, lines, documents: tf.size(lines) > 0)
        if next(iter(chunks.take(1)), None) is not None:
            return
        others = self.chunks(not validation).as_numpy_iterator()
        count = len({document for _, _, documents in others for document in np.unique(documents).tolist()})
        side, change = ("validation", "raise") if validation else ("training", "lower")
        # Whole documents are held out, so no share helps if there is only one.
        remedy = (
            f"Give more documents, or {change} data.validation_share"
            if count > 1
            else "Put blank lines between documents, or give each in a file of its own"
        )
        raise UserError(
            f"{self.names}: needs text for {side}. Received: none; documents on the other side: {count:,}. {remedy}."
        )

    def training_texts(self) -> Iterator[str]:
        """Iterates over the lines of the training side as strings, to learn a vocabulary from."""
        for _, lines, _ in self.chunks(validation=False).as_numpy_iterator():
            yield from (line.decode("utf-8", "ignore") for line in lines)

    def _lines(self, source: tf.Tensor) -> tf.data.Dataset:
        if self._corpus is None:
            return tf.data.TextLineDataset(self._paths[source], compression_type=self._compressions[source])
        return self._corpus.flat_map(lambda text: tf.data.Dataset.from_tensor_slices(_document(text)))

    def _part(
        self, state: tuple[tf.Tensor, tf.Tensor, tf.Tensor], lines: tf.Tensor, validation: bool
    ) -> tuple[tuple[tf.Tensor, tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
        is_open, open_is_held_out, last_document = state
        is_blank = tf.strings.regex_full_match(lines, _BLANK)
        begins = ~is_blank & tf.concat([[~is_open], is_blank[:-1]], axis=0)
        document = tf.cumsum(tf.cast(begins, tf.int32))  # 0 for the document that continues into the chunk.
        hashes = tf.strings.to_hash_bucket_strong(tf.boolean_mask(lines, begins), _SIDES, _SIDE_KEY)
        held_out = tf.concat([[open_is_held_out], hashes < round(self.validation_share * _SIDES)], axis=0)
        held_out = tf.gather(held_out, document)
        is_wanted = ~is_blank & (held_out if validation else ~held_out)
        documents = last_document + tf.cast(document, tf.int64)
        state = (~is_blank[-1], held_out[-1], documents[-1])
        return state, (tf.boolean_mask(lines, is_wanted), tf.boolean_mask(documents, is_wanted))


def _of_bounded_size(lines: tf.Tensor) -> tf.data.Dataset:
    """Divide lines [n] into parts of about a megabyte, and long lines into their sentences; drop byte order marks."""
    lines = tf.strings.regex_replace(lines, _BYTE_ORDER_MARK, "")
    is_long = tf.strings.length(lines) > _LONGEST_LINE

    def divided() -> tf.Tensor:
        # A blank line at the end would be the end of the document.
        broken = tf.strings.regex_replace(break_sentences(lines), rf"\n{_BLANK}\z", "")
        return tf.strings.split(tf.where(is_long, broken, lines), "\n").values

    lines = tf.cond(tf.reduce_any(is_long), divided, lambda: lines)
    parts = tf.cumsum(tf.cast(tf.strings.length(lines), tf.int64)) // _BYTES_AT_ONCE
    starts = tf.where(tf.concat([[True], parts[1:] != parts[:-1]], axis=0))[:, 0]
    return tf.data.Dataset.from_tensor_slices(tf.RaggedTensor.from_row_starts(lines, starts, validate=False))


def _document(text: tf.Tensor) -> tf.Tensor:
    """The lines of one text without its blank lines, and a blank line at the end."""
    text = tf.strings.regex_replace(tf.strings.strip(text), rf"\n{_BLANK}\n", "\n")
    return tf.concat([tf.strings.split(text, "\n"), [""]], axis=0)


def _checked_compression(path: str) -> str:
    """TensorFlow's name for the compression of a file, "" if there is none. Raises `UserError`.

    Only the start of plain text is checked, because the lines are read in the graph. A .gz is read to its end, because
    TensorFlow does not notice that one is truncated, and stops at the zeros that Python skips.
    """
    try:
        kind = compression(path)
        if kind not in ("", GZIP):
            raise UserError(
                f"{path}: needs plain text or .gz if data.source is text. Received: {kind}. Set data.source=files, or "
                "decompress it."
            )
        start, _ = beginning(read_chunks(path))
        found = format_of(path, start)
        if found != PLAIN:
            raise UserError(
                f"{path}: needs plain text if data.source is text. Received: {found}. Set data.source=files."
            )
        if b"\0" in start:
            raise binary(start)
        if _LONE_RETURN.search(start):
            raise Unreadable("lines that end in \\r alone, which would be joined")
        _check_utf8(path, start)
        if kind == GZIP:
            require_whole_gzip(path)
    except Unreadable as problem:
        raise UserError(
            f"{path}: needs a whole file of UTF-8 text if data.source is text. Received: {problem}. Repair it, leave "
            "it out, or set data.source=files, which keeps the lines before any damage."
        ) from None
    return "GZIP" if kind else ""


def _check_utf8(path: str, start: bytes) -> None:
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        # The last character read may be incomplete, which is not an error of the file.
        if error.start < len(start) - 3:
            raise UserError(
                f"{path}: needs UTF-8. Received: byte {start[error.start]:#04x} at {error.start}. Convert the file."
            ) from None
