"""The plain text of web pages in archives (WARC, ISO 28500), as in Common Crawl's WET files."""

from collections.abc import Iterator

from keras_bert.data.corpus.chunk_stream import ChunkStream
from keras_bert.data.corpus.text_lines import Unreadable, decoded_document
from keras_bert.errors import UserError
from keras_bert.extras import import_extra

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
