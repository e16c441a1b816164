"""The lines of text files, compressed or not, read block by block."""

import bz2
import codecs
import contextlib
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from keras_bert.core.errors import UserError
from keras_bert.core.files import open_file
from keras_bert.core.imports import import_extra

_CHUNK_BYTES = 1 << 16  # More is not faster, and would let a progress bar of the bytes read run ahead of the work.
_START_BYTES = 1 << 14  # Enough to tell a file's format.
_PIECE_BYTES = 1 << 16  # At most this much text before a damaged place is lost.


def _open_zstandard(stream: Any) -> Any:
    zstd = import_extra(_ZSTANDARD, "A .zst file")
    # Some corpora are packed with windows of 2 GB, which are refused by default.
    return zstd.open(stream, options={zstd.DecompressionParameter.window_log_max: 31})


GZIP = ".gz"
_ZSTANDARD = "backports.zstd"
_OPENERS: dict[str, Callable[..., Any]] = {GZIP: gzip.open, ".bz2": bz2.open, ".xz": lzma.open, ".zst": _open_zstandard}
COMPRESSED = tuple(_OPENERS)  # Endings of files' names.
_MAGIC = {
    b"\x1f\x8b": GZIP,
    b"BZh": ".bz2",
    b"\xfd7zXZ\x00": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"\x50\x2a\x4d\x18": ".zst",  # From pzstd.
}
_GZIP_BITS = 16 + zlib.MAX_WBITS  # Makes zlib read one part of a .gz.
_LONGEST_MAGIC = max(map(len, _MAGIC))
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)
_LONGEST_LINE = 1 << 26  # In characters. Longer lines are cut, so that memory stays bounded.


class Unreadable(Exception):
    """A file cannot be read, or not to its end.

    Attributes:
        line: the number of the bad line, counted from 1; None if unknown.
        is_refused: whether the system or the store did not deliver the file; false if its content is bad.
    """

    def __init__(self, reason: str, line: int | None = None, is_refused: bool = False):
        super().__init__(reason)
        self.line = line
        self.is_refused = is_refused


def binary(start: bytes) -> Unreadable:
    """The error for a file with a zero byte, by its first bytes."""
    is_utf16 = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return Unreadable("UTF-16, not UTF-8" if is_utf16 else "binary, not text")


def read_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """Iterates over the lines of a UTF-8 file without line ends; .gz, .bz2, .xz and .zst are detected from the content.

    "-" reads stdin line by line as it arrives, without decompression.

    Raises:
        Unreadable: the file is missing, damaged, binary or not UTF-8; after the complete lines before the damage.
    """
    return decoded_lines(read_chunks(path))


def read_blocks(path: str, encoding: str = "utf-8-sig") -> Iterator[str]:
    """Iterates over the text of a UTF-8 file block by block, decompressed like `read_lines`.

    Line ends are unchanged. "-" reads stdin.

    Raises:
        Unreadable: as for `read_lines`.
    """
    return decoded_blocks(read_chunks(path), encoding)


def decoded_blocks(chunks: Iterable[bytes], encoding: str = "utf-8-sig") -> Iterator[str]:
    """Like `read_blocks`, but from decompressed blocks of bytes."""
    return (text for text, _ in _decoded(chunks, encoding) if text)


def read_whole_lines(path: str) -> Iterator[str]:
    """Iterates over the unchanged lines of a UTF-8 file: with line ends, and a byte order mark if it has one.

    Line numbers are the same as with `read_lines`. "-" reads stdin.

    Raises:
        UserError: the file is missing, damaged, binary or not UTF-8.
    """
    pending: list[str] = []  # Parts of an unfinished line; joined once, because each join copies them.
    try:
        for text in read_blocks(path, "utf-8"):
            pending.append(text)
            if "\n" in text or "\r" in text:
                # With newline="" the stream ends lines at "\n", "\r\n" and "\r" without changing them. The last line
                # may continue in the next block: even "\r" may be followed by "\n".
                *lines, rest = io.StringIO("".join(pending), newline="")
                yield from lines
                pending = [rest]
    except Unreadable as problem:
        where = path if problem.line is None else f"{path} line {problem.line}"
        remedy = "Give a file that can be read." if problem.is_refused else "Convert the file."
        raise UserError(f"{where}: needs UTF-8 text. Received: {problem}. {remedy}") from None
    yield from io.StringIO("".join(pending), newline="")


def plain_ending(path: str | os.PathLike[str]) -> str:
    """The ending of a file's name in lower case, ignoring that of a compression: ".csv" for reviews.csv.gz."""
    stem, ending = os.path.splitext(os.fspath(path).lower())
    return os.path.splitext(stem)[1] if ending in COMPRESSED else ending


def decoded_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Iterates over the lines of UTF-8 text in blocks, without line ends.

    Raises `Unreadable` like `read_lines`.
    """
    pending: list[str] = []  # Parts of an unfinished line; joined once, because each join copies them.
    length = 0
    for _, text in _decoded(chunks, "utf-8-sig"):
        *lines, rest = text.split("\n")
        if lines:
            lines[0] = "".join([*pending, lines[0]])
            yield from lines
            pending, length = [], 0
        pending.append(rest)
        length += len(rest)
        if length > _LONGEST_LINE:
            yield "".join(pending)
            pending, length = [], 0
    if length:
        yield "".join(pending)


def _decoded(chunks: Iterable[bytes], encoding: str) -> Iterator[tuple[str, str]]:
    """Yield (text, the same with "\\n" as its only line end) for each chunk, and once more at the end.

    Raises `Unreadable` after the text before the damage.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    line_ends, complete = io.IncrementalNewlineDecoder(None, translate=True), 0
    for chunk in chain(chunks, [b""]):
        good, zero, _ = chunk.partition(b"\0")
        problem = binary(chunk) if zero else None
        try:
            text = decoder.decode(good, final=not chunk)
        except UnicodeDecodeError as error:
            if error.start or not zero:
                reason = f"not UTF-8 ({error.reason}: byte {error.object[error.start]:#04x})"
                problem = Unreadable(reason, complete + len((error.object[: error.start] + b".").splitlines()))
            text = error.object[: error.start].decode("utf-8")
        translated = line_ends.decode(text, final=not chunk)
        yield text, translated
        if problem:
            raise problem
        complete += translated.count("\n")


def read_chunks(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Iterates over the blocks of a file's content, decompressed like `read_lines`.

    Except from stdin, the first block is large enough to tell the format, or the whole file. Raises `Unreadable` after
    the content before the damage.
    """
    if path == "-":
        yield from iter(lambda: sys.stdin.buffer.read1(_CHUNK_BYTES), b"")  # type: ignore[union-attr]
        return
    pieces: list[bytes] = []
    size, wanted = 0, _START_BYTES
    problem: Unreadable | None = None
    try:
        with contextlib.ExitStack() as stack:
            stream: Any = stack.enter_context(open_file(path))
            if not stream.seekable():
                raise Unreadable("a pipe, which can be read only once", is_refused=True)
            kind = _compression(stream.read(_LONGEST_MAGIC))
            stream.seek(0)
            if kind:
                stream = stack.enter_context(_OPENERS[kind](stream))
            # `read` would read on until it has all bytes asked for, and drop them if it meets damage.
            while piece := stream.read1(_PIECE_BYTES):
                pieces.append(piece)
                size += len(piece)
                if size >= wanted:
                    yield b"".join(pieces)
                    pieces, size, wanted = [], 0, _CHUNK_BYTES
    except _damaged() as error:
        problem = _unreadable(error)
    if pieces:
        yield b"".join(pieces)
    if problem:
        raise problem


def _damaged() -> tuple[type[Exception], ...]:
    zstd = sys.modules.get(_ZSTANDARD)
    return _DAMAGED if zstd is None else (*_DAMAGED, zstd.ZstdError)


def compression(path: str | os.PathLike[str]) -> str:
    """The usual file ending for the compression of a file's content; "" if there is none. Raises `Unreadable`."""
    try:
        with open_file(path) as stream:
            return _compression(stream.read(_LONGEST_MAGIC))
    except OSError as error:
        raise _unreadable(error) from None


def require_whole_gzip(path: str) -> None:
    """Raises `Unreadable` if a .gz is truncated, damaged or padded with zeros after any of its parts, as on tapes.

    Python skips such zeros; TensorFlow takes them for damage.
    """
    part = zlib.decompressobj(_GZIP_BITS)
    try:
        with open_file(path) as stream:
            while piece := stream.read(_PIECE_BYTES):
                while piece:
                    if part.eof and piece.startswith(b"\0"):
                        raise Unreadable("zeros after compressed text, which TensorFlow takes for damage")
                    part = zlib.decompressobj(_GZIP_BITS) if part.eof else part
                    part.decompress(piece)
                    piece = part.unused_data
        if not part.eof:
            raise EOFError("it ends in the middle of compressed text")
    except _DAMAGED as error:
        raise _unreadable(error) from None


def _compression(head: bytes) -> str:
    return next((ending for magic, ending in _MAGIC.items() if head.startswith(magic)), "")


def _unreadable(error: Exception) -> Unreadable:
    reason = getattr(error, "strerror", None) or error
    # A damaged gzip file is an OSError too, but without a number.
    return Unreadable(f"cannot be read ({reason})", is_refused=getattr(error, "errno", None) is not None)


def beginning(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return (the first block with text, without white space in front; an iterator over all blocks).

    The former is empty if no block has text.
    """
    read: list[bytes] = []
    for chunk in chunks:
        read.append(chunk)
        if start := chunk.removeprefix(codecs.BOM_UTF8).lstrip():
            return start, chain(read, chunks)
    return b"", iter(read)


def decoded_document(content: bytes) -> tuple[str | None, str | None]:
    """`(document, None)`, or `(anything, why it is left out)` if it is empty or not UTF-8."""
    try:
        return stripped_document(content.decode("utf-8"))
    except UnicodeDecodeError:
        return None, "not UTF-8"


def stripped_document(text: str) -> tuple[str, str | None]:
    """`(document, None)`, or `(anything, why it is left out)` if it is empty."""
    text = text.strip()
    return text, None if text else "empty"


def until_damage(lines: Iterable[str], damage: list[Unreadable]) -> Iterator[str]:
    """Iterates over the lines; an `Unreadable` ends them and is appended to `damage` instead of raised."""
    try:
        yield from lines
    except Unreadable as problem:
        damage.append(problem)


_POINTER = "a pointer of Git LFS"
_MAGIC_OF_NO_TEXT = {
    b"%PDF-": "PDF",
    b"%!PS": "PostScript",
    b"{\\rtf": "RTF",
    b"PK\x03\x04": "a zip archive or an Office document",
    b"\xd0\xcf\x11\xe0": "an Office document",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"\x04\x22\x4d\x18": "LZ4-compressed data",
    b"\xff\x06\x00\x00sNaPpY": "Snappy-compressed data",
    b"\x1f\x9d": "compress's data (.Z)",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"GIF8": "an image",
    b"SQLite format 3": "a database",
    b"version https://git-lfs.github.com/": _POINTER,
}
_TAR = slice(257, 262)
_MARKUP = re.compile(
    rb"(?:<!--.*?-->\s*)*<(?:!doctype\s+html|(?:html|head|body|title|meta|link|script|style|div|p|h[1-6]|table)[\s/>])",
    re.DOTALL | re.IGNORECASE,
)
_MARKUP_ENDINGS = {".html": "HTML", ".htm": "HTML", ".xhtml": "HTML", ".xml": "XML", ".svg": "XML"}


def what_is_no_text(ending: str, start: bytes) -> str | None:
    """The kind of a file whose text cannot be read here, such as "PDF" or "HTML"; None for any other file.

    Args:
        ending: the `plain_ending` of its name.
        start: its first kilobytes, decompressed, without white space in front.
    """
    if found := next((name for mark, name in _MAGIC_OF_NO_TEXT.items() if start.startswith(mark)), None):
        return found
    if start[_TAR] == b"ustar":
        return "a tar archive"
    if start.startswith(b"<?xml"):
        return None if b"<mediawiki" in start[:1000] else "HTML" if b"<html" in start[:1000] else "XML"
    if _MARKUP.match(start):
        return "HTML"
    return _MARKUP_ENDINGS.get(ending) if start.startswith(b"<") and not start.startswith(b"<mediawiki") else None


def remedy_of(found: str, others: str) -> str:
    """What to do about a file of a kind that `what_is_no_text` found; `others`: about any but a pointer."""
    return "Fetch the file itself: git lfs pull." if found == _POINTER else others
