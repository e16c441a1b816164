"""Articles in MediaWiki's XML dumps (`*-pages-articles.xml.bz2`), read page by page.

Of each page the newest text in the dump is taken. Redirects, pages outside the main namespace and pages that are not
wikitext are left out.
"""

from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree

from keras_bert.data.corpus.chunk_stream import ChunkStream
from keras_bert.data.corpus.text_lines import Unreadable
from keras_bert.data.corpus.wikipedia import SHORTEST_DOCUMENT, TOO_SHORT
from keras_bert.data.corpus.wikitext import Unparsable, WikitextReader

_ARTICLES, _FILES, _CATEGORIES = "0", "6", "14"  # Namespaces.
_REDIRECT = "a redirect"
_OTHER_NAMESPACE = "not an article"
_WIKITEXT = "wikitext"


class _Page(NamedTuple):
    namespace: str
    is_redirect: bool
    model: str
    text: str


def mediawiki_documents(chunks: Iterator[bytes]) -> Iterator[tuple[str | None, str | None]]:
    """Iterates over `(document, None)` or `(None, why it was left out)`; blank lines separate paragraphs.

    Args:
        chunks: the dump, decompressed, in blocks of any size.

    Raises:
        Unreadable: the XML is broken; names the line.
        UserError: mwparserfromhell is not installed.
    """
    hidden: set[str] = set()  # Names of the namespaces whose links are not part of the text; first in the dump.
    reader: WikitextReader | None = None
    for page in _pages(chunks, hidden):
        reader = reader or WikitextReader(hidden)
        if page.namespace != _ARTICLES or page.model != _WIKITEXT:
            yield None, _OTHER_NAMESPACE
        elif page.is_redirect:
            yield None, _REDIRECT
        else:
            try:
                text = reader(page.text)
            except Unparsable:
                yield None, "wikitext that cannot be parsed"
            else:
                yield (text, None) if len(text.encode()) >= SHORTEST_DOCUMENT else (None, TOO_SHORT)


def _pages(chunks: Iterator[bytes], hidden: set[str]) -> Iterator[_Page]:
    """The pages in order, with one page in memory; adds the names of files' and categories' namespaces to `hidden`."""
    stream = ChunkStream(chunks)
    root = None
    namespace, is_redirect, model, text = _ARTICLES, False, _WIKITEXT, ""
    try:
        for event, element in ElementTree.iterparse(stream, events=("start", "end")):
            if root is None:
                root = element
            if event == "start":
                continue
            match element.tag.rpartition("}")[2]:
                case "namespace" if element.get("key") in (_FILES, _CATEGORIES):
                    hidden.add((element.text or "").lower())
                case "ns":
                    namespace = (element.text or _ARTICLES).strip()
                case "redirect":
                    is_redirect = True
                case "model":
                    model = (element.text or _WIKITEXT).strip()
                case "text":
                    text = element.text or ""
                case "revision":
                    element.clear()
                case "page":
                    yield _Page(namespace, is_redirect, model, text)
                    namespace, is_redirect, model, text = _ARTICLES, False, _WIKITEXT, ""
                    root.clear()
    except ElementTree.ParseError as error:
        raise Unreadable(f"broken XML, {error}") from None
