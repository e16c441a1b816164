"""Running text of pages in large files: web archives, WikiExtractor's files and MediaWiki's dumps."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from keras_bert.core.errors import UserError, reason
from keras_bert.core.imports import import_extra
from keras_bert.data.corpus.text_lines import Unreadable, decoded_document

if TYPE_CHECKING:
    from mwparserfromhell.nodes import Node, Tag, Wikilink
    from mwparserfromhell.wikicode import Wikicode


class ChunkStream(io.RawIOBase):
    """A raw stream of the blocks of an iterator.

    `read` passes on the iterator's errors, after all blocks before them; an `io.BufferedReader` would drop some.
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


_TEXT_OF_A_PAGE = "conversion"  # The records of plain text in WARC (ISO 28500), as in Common Crawl's WET files.


def warc_documents(chunks: Iterator[bytes], path: str) -> Iterator[tuple[str | None, str | None]]:
    """Iterates over `(document, None)` or `(None, why it was left out)`, one for each record with a page's text.

    Other records, such as the pages themselves, are skipped.

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
        raise Unreadable(f"a broken archive ({reason(error, 100)})") from None
    if not has_text:
        raise UserError(
            f"{path}: needs the text of web pages (records of the type {_TEXT_OF_A_PAGE!r}). Received: an archive "
            "without any. Give the WET file that belongs to it, or extract the text of its pages first."
        )


# In UTF-8 bytes, so that one number suits all scripts. A shorter paragraph may be a heading, even if it ends in ".".
_SHORTEST_PARAGRAPH = 60
SHORTEST_DOCUMENT = 200
TOO_SHORT = "hardly any running text"

_TITLE = re.compile(r'title="([^"]*)"|$')
_LIST_ITEM = re.compile(r"[-*#•·:;|{]|BULLET::::|\d+\.\s")
_DEBRIS = re.compile(r"<ref[^>]*>.*?</ref>|</?[a-zA-Z][^<>]*>|[(（][\s,;:，；：、]*[)）]")
_SENTENCE_END = re.compile(r"""[.!?。！？…]["'”’」』）】》)\]]*\Z""")
_LONGEST_END = 10  # Characters; searching whole paragraphs would be slow.
# Chinese Wikipedia's -{…}-, which chooses a word by the reader's region: -{zh-hans:软件; zh-hant:軟體}-.
_CONVERSION = re.compile(r"-\{(?:[^{}|]*\|)?([^{}]*)\}-")
_FIRST_VARIANT = re.compile(r"\s*zh[\w-]*:([^;]*)")


def wiki_documents(lines: Iterable[str]) -> Iterator[tuple[str | None, str | None]]:
    """Iterates over WikiExtractor's articles: `(document, None)` or `(None, why it was left out)`.

    Blank lines separate paragraphs.
    """
    title: str | None = None
    own: list[str] = []
    for line in chain(lines, ["</doc>"]):
        if line.startswith("<doc "):
            title, own = html.unescape(_TITLE.search(line)[1] or ""), []  # type: ignore[index]
        elif title is None:
            continue
        elif line.startswith("</doc>"):
            yield article(own, title)
            title = None
        else:
            own.append(line)


def article(lines: Iterable[str], title: str | None = None) -> tuple[str | None, str | None]:
    """`(the paragraphs of running text, None)` or `(None, why the article is left out)`."""
    paragraphs = (cleaned(line) for line in lines if line)
    text = "\n\n".join(paragraph for paragraph in paragraphs if paragraph != title and is_running_text(paragraph))
    return (text, None) if len(text.encode()) >= SHORTEST_DOCUMENT else (None, TOO_SHORT)


def cleaned(line: str) -> str:
    """Decode the entities of a line, and remove leftover markup, empty brackets and other regions' variants."""
    line = html.unescape(line)
    if "-{" in line:
        line = _CONVERSION.sub(_converted, line)
    # A leading comma is left where the template with the article's name was removed.
    return _DEBRIS.sub("", line).strip().lstrip("，、；, ")


def _converted(match: re.Match[str]) -> str:
    variant = _FIRST_VARIANT.match(match[1])
    return (variant[1] if variant else match[1]).strip()


def is_running_text(paragraph: str) -> bool:
    """Whether a line is neither a heading, a list item nor the introduction of a list."""
    if _LIST_ITEM.match(paragraph) or not _SENTENCE_END.search(paragraph, max(len(paragraph) - _LONGEST_END, 0)):
        return False
    return not paragraph.endswith(".") or len(paragraph.encode()) >= _SHORTEST_PARAGRAPH


_SEPARATE_NAMESPACES = frozenset({"file", "image", "media", "category"})
# A link to the article in another language, [[de:Berlin]]; in text there are [[CSI: Miami]] and [[Re:Zero]].
_LANGUAGE_LINK = re.compile(r"[a-z]{2,3}(?:-[a-z-]+)?:\S")
_NOT_TEXT = frozenset(
    """categorytree ce chem gallery graph hiero imagemap indicator inputbox mapframe maplink math noinclude pre ref
    references score source syntaxhighlight table templatedata templatestyles timeline""".split()
)
_OTHER_LINES = (*"*#:;", *" \t", "----")  # List items, verbatim text and rules.

_STYLE = re.compile(r"'''''|'''|''")
_LEFT_SPACE = re.compile(r" +(?= |[,.](?:\s|\Z))")


class Unparsable(Exception):
    """The wikitext cannot be parsed."""


class WikitextReader:
    """Extracts the paragraphs of running text from wikitext, like those that BERT was trained on.

    Headings, templates, tables, references, lists, images, categories and comments are left out. A link becomes the
    text it shows. Templates are not expanded, so the text that they would show is missing.

    Args:
        hidden: names of the namespaces of files and categories in the wiki's language, in lower case.

    Raises:
        UserError: mwparserfromhell is not installed.
    """

    def __init__(self, hidden: Iterable[str] = ()):
        self._library = import_extra("mwparserfromhell", "A MediaWiki dump")
        self._hidden = _SEPARATE_NAMESPACES | set(hidden)

    def __call__(self, text: str) -> str:
        """The text of an article, with blank lines between paragraphs. Raises `Unparsable`."""
        try:
            # Bold and italic as tags of their own would take most of the time.
            code = self._library.parse(text, skip_style_tags=True)
            shown = _STYLE.sub("", "".join(self._shown(code)))
        except (self._library.parser.ParserError, RecursionError):
            raise Unparsable from None
        # Where a template was removed, a space may be left over.
        paragraphs = (_LEFT_SPACE.sub("", cleaned(paragraph)) for paragraph in _paragraphs(shown))
        return "\n\n".join(filter(is_running_text, paragraphs))

    def _shown(self, code: Wikicode | None) -> Iterator[str]:
        for node in code.nodes if code is not None else ():
            yield from self._node(node)

    def _node(self, node: Node) -> Iterator[str]:
        nodes = self._library.nodes
        if isinstance(node, nodes.Text):
            yield str(node)
        elif isinstance(node, nodes.Wikilink):
            yield from self._link(node)
        elif isinstance(node, nodes.Tag):
            yield from self._tag(node)
        elif isinstance(node, nodes.Heading):
            yield "\n\n"
        elif isinstance(node, nodes.ExternalLink):
            yield from self._shown(node.title)
        elif isinstance(node, nodes.HTMLEntity):
            try:
                character = node.normalize()
                character.encode()  # Half a surrogate pair fails only here.
            except (ValueError, OverflowError):
                return  # Not a character.
            yield character

    def _link(self, link: Wikilink) -> Iterator[str]:
        title = str(link.title).strip()
        namespace, colon, _ = title.partition(":")
        if colon and namespace.strip().lower() in self._hidden:
            return
        if link.text:
            yield from self._shown(link.text)
        elif link.text is not None or not _LANGUAGE_LINK.match(title):
            yield title.removeprefix(":")

    def _tag(self, tag: Tag) -> Iterator[str]:
        name = str(tag.tag).strip().lower()
        if tag.wiki_markup and tag.self_closing:
            yield str(tag.wiki_markup)  # Of a list item, or a horizontal line.
        elif name == "br":
            yield " "
        elif name not in _NOT_TEXT:
            yield from self._shown(tag.contents)


def _paragraphs(text: str) -> Iterator[str]:
    """The paragraphs, each on one line."""

    def is_text(line: str) -> bool:
        return bool(line.strip()) and not line.startswith(_OTHER_LINES)

    for are_text, lines in groupby(text.split("\n"), is_text):
        if are_text:
            yield " ".join(line.strip() for line in lines)


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
    """Iterates over a dump's pages: `(document, None)` or `(None, why it was left out)`.

    Blank lines separate paragraphs.

    Args:
        chunks: the dump, decompressed, in blocks of any size.

    Raises:
        Unreadable: the XML is broken; names the line.
        UserError: mwparserfromhell is not installed.
    """
    hidden: set[str] = set()  # Namespaces whose links are not part of the text; the dump lists them before the pages.
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
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # The others are for encodings.
        raise Unreadable(f"broken XML, {error}") from None
