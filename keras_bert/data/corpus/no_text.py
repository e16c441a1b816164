"""Tells files from which text would have to be extracted first, by their first bytes."""

import re

_MAGIC = {
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
_MARKUP_ENDINGS = {".html": "HTML", ".htm": "HTML", ".xhtml": "HTML", ".xml": "XML", ".svg": "XML"}


def what_is_no_text(ending: str, start: bytes) -> str | None:
    """What a file is whose text is not read, such as "PDF" or "HTML"; None for any other.

    Args:
        ending: of its name, in lower case, without that of a compression.
        start: its first kilobytes, decompressed, without white space in front.
    """
    if found := next((name for mark, name in _MAGIC.items() if start.startswith(mark)), None):
        return found
    if start[_TAR] == b"ustar":
        return "a tar archive"
    if start.startswith(b"<?xml"):
        return None if b"<mediawiki" in start[:1000] else "HTML" if b"<html" in start[:1000] else "XML"
    if _MARKUP.match(start):
        return "HTML"
    return _MARKUP_ENDINGS.get(ending) if start.startswith(b"<") and not start.startswith(b"<mediawiki") else None
