"""The running text of an article in MediaWiki's markup, through mwparserfromhell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from keras_bert.data.corpus.wikipedia import cleaned, is_running_text
from keras_bert.extras import import_extra

if TYPE_CHECKING:
    from mwparserfromhell.nodes import Node, Tag, Wikilink
    from mwparserfromhell.wikicode import Wikicode

_SEPARATE_NAMESPACES = frozenset({"file", "image", "media", "category"})
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z-]+)?\Z")
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
    """Takes the paragraphs of running text out of wikitext, as BERT was trained on them.

    Headings, templates, tables, references, lists, images, categories and comments are left out. A link is the text it
    shows. Nothing is expanded, so what a template would show is missing.

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
                yield node.normalize()
            except (ValueError, OverflowError):
                pass  # Not a character.

    def _link(self, link: Wikilink) -> Iterator[str]:
        title = str(link.title)
        namespace, colon, _ = title.partition(":")
        if colon:
            namespace = namespace.strip().lower()
            if namespace in self._hidden or (link.text is None and _LANGUAGE.match(namespace)):
                return
        if link.text:
            yield from self._shown(link.text)
        else:
            yield title.strip().removeprefix(":")

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
    paragraph: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.strip() and not line.startswith(_OTHER_LINES):
            paragraph.append(line.strip())
        elif paragraph:
            yield " ".join(paragraph)
            paragraph = []
