"""Web pages in Common Crawl's WET files: archives (ISO 28500) of the plain text of pages."""

from collections.abc import Iterator

from keras_bert.data.corpus.chunk_stream import ChunkStream
from keras_bert.data.corpus.text_lines import Unreadable
from keras_bert.extras import import_extra

_TEXT_OF_A_PAGE = "conversion"
_PAGES = ("response", "resource", "revisit")


def wet_documents(chunks: Iterator[bytes]) -> Iterator[tuple[str | None, str | None]]:
    """Iterates over `(document, None)` or `(None, why it was left out)`, one for each page.

    Args:
        chunks: the file's content, decompressed, in blocks of any size.

    Raises:
        Unreadable: the archive is broken, or holds pages instead of their text.
        UserError: warcio is not installed.
    """
    archives = import_extra("warcio.archiveiterator", "A WET file")
    exceptions = import_extra("warcio.exceptions", "A WET file")
    records = archives.ArchiveIterator(ChunkStream(chunks))
    try:
        for record in records:
            if record.rec_type in _PAGES:
                raise Unreadable("an archive of web pages; give the WET file, which holds their text")
            if record.rec_type != _TEXT_OF_A_PAGE:
                continue
            try:
                text = record.content_stream().read().decode("utf-8").strip()
            except UnicodeDecodeError:
                yield None, "not UTF-8"
            else:
                yield text, None if text else "empty"
    except exceptions.ArchiveLoadFailed as error:
        raise Unreadable(f"a broken archive ({' '.join(str(error).split())[:100]})") from None
