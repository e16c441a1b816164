"""Extracts running text from WikiExtractor's files, without titles, headings, lists, tables and left-over markup."""

import html
import re
from collections.abc import Iterable, Iterator
from itertools import chain

# In UTF-8 bytes, so that one number suits scripts with many and with few characters. Headings end in "." too.
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
    """Iterates over `(document, None)` or `(None, why it was left out)`; blank lines separate paragraphs."""
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
    """A line without entities, left-over markup, emptied brackets and variants of other regions."""
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
