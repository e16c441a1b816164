"""The plain text of web pages in archives (WARC, ISO 28500), as in Common Crawl's WET files."""

import io
from collections.abc import Iterator
from typing import Any

from keras_bert.core.errors import UserError
from keras_bert.core.imports import import_extra
from keras_bert.data.corpus.text_lines import Unreadable, decoded_document


class ChunkStream(io.RawIOBase):
    """Reads the blocks of an iterator one after the other.

    What the iterator raises comes out of `read`, after all that it gave before; an `io.BufferedReader` would drop some.
    """

    def __init__(self, chunks: Iterator[bytes]):
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


_TEXT_OF_A_PAGE = "conversion"


def warc_documents(chunks: Iterator[bytes], path: str) -> Iterator[tuple[str | None, str | None]]:
    """Iterates over `(document, None)` or `(None, why it was left out)`, one for each page whose text is there.

    Records of other kinds, such as the pages themselves, are passed over.

    Args:
        chunks: the file's content, decompressed, in blocks of any size.
        path: the file's path, for messages.

    Raises:
        Unreadable: the archive is broken.
        UserError: it holds no text of pages, or warcio is not installed.
    """
    archives = import_extra("warcio.archiveiterator", "A web archive")
    exceptions = import_extra("warcio.exceptions", "A web archive")
    has_text = False
    records = archives.ArchiveIterator(ChunkStream(chunks))
    try:
        for record in records:
            if record.rec_type != _TEXT_OF_A_PAGE:
                continue
            has_text = True
            content = record.content_stream().read()
            if len(content) < (record.length or 0):
                raise Unreadable("ends within a page")
            yield decoded_document(content)
    except exceptions.ArchiveLoadFailed as error:
        raise Unreadable(f"a broken archive ({' '.join(str(error).split())[:100]})") from None
    if not has_text:
        raise UserError(
            f"{path}: needs the text of web pages (records of the type {_TEXT_OF_A_PAGE!r}). Received: an archive "
            "without any. Give the WET file that belongs to it, or extract the text of its pages first."
        )
