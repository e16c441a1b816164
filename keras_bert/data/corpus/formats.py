"""The format of a file of a corpus, told by its first bytes, and by its name where these do not tell."""

import re

from keras_bert.data.corpus.annotated_text import is_conllu
from keras_bert.data.corpus.tables import plain_ending
from keras_bert.errors import UserError

PLAIN = "plain text"
JSON_LINES = "JSON lines"
WIKI_EXTRACTOR = "WikiExtractor's format"
MEDIAWIKI = "a MediaWiki dump"
WARC = "a web archive"
CONLLU = "CoNLL-U"
CSV, TSV, PARQUET = "CSV", "TSV", "Parquet"
_READ = {PLAIN, JSON_LINES, WIKI_EXTRACTOR, MEDIAWIKI, WARC, CONLLU, CSV, TSV, PARQUET}
_HTML, _XML = "HTML", "XML"

_MAGIC = {
    b"<doc ": WIKI_EXTRACTOR,
    b"<mediawiki": MEDIAWIKI,
    b"WARC/": WARC,
    b"PAR1": PARQUET,
    b"%PDF-": "PDF",
    b"%!PS": "PostScript",
    b"{\\rtf": "RTF",
    b"PK\x03\x04": "a zip archive or an Office document",
    b"\xd0\xcf\x11\xe0": "an Office document",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"GIF8": "an image",
    b"SQLite format 3": "a database",
}
_TAR = slice(257, 262)
_MARKUP = re.compile(
    rb"(?:<!--.*?-->\s*)*<(?:!doctype\s+html|(?:html|head|body|title|meta|link|script|style|div|p|h[1-6]|table)[\s/>])",
    re.DOTALL | re.IGNORECASE,
)
_MARKUP_ENDINGS = {".html": _HTML, ".htm": _HTML, ".xhtml": _HTML, ".xml": _XML, ".svg": _XML}
_JSON = re.compile(rb"\{|\[\s*\{")
_JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
_TABLE_ENDINGS = {".csv": CSV, ".tsv": TSV}


def format_of(path: str, start: bytes) -> str:
    """The format of a file.

    Args:
        path: its name.
        start: its first kilobytes, decompressed, without white space in front.

    Raises:
        UserError: it is of a format that is not read, such as HTML or PDF.
    """
    found = _format_of(plain_ending(path), start)
    if found not in _READ:
        raise UserError(f"{path}: needs text. Received: {found}. Extract its text first, or leave it out.")
    return found


def _format_of(ending: str, start: bytes) -> str:
    magic = next((name for mark, name in _MAGIC.items() if start.startswith(mark)), None)
    if magic:
        return magic
    if start[_TAR] == b"ustar":
        return "a tar archive"
    if ending in _JSON_ENDINGS or _JSON.match(start):
        return JSON_LINES
    if start.startswith(b"<?xml"):
        return MEDIAWIKI if b"<mediawiki" in start[:1000] else _HTML if b"<html" in start[:1000] else _XML
    if _MARKUP.match(start):
        return _HTML
    if start.startswith(b"<") and ending in _MARKUP_ENDINGS:
        return _MARKUP_ENDINGS[ending]
    if ending in _TABLE_ENDINGS:
        return _TABLE_ENDINGS[ending]
    return CONLLU if is_conllu(start.decode("utf-8", "replace").split("\n")) else PLAIN
