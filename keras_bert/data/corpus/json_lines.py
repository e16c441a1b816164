"""Documents in JSON lines, one object a line; broken lines are refused or counted."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from keras_bert.config.corpus import SKIP, CorpusConfig
from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.text_lines import stripped_document
from keras_bert.errors import UserError

_LONGEST_LINE = 1 << 26  # In bytes. A longer line is broken, so that memory stays bounded.
_MOST_FIELDS_SHOWN = 5
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class BrokenLine(Exception):
    """Why a line gives no text; `hint` adds what was found instead."""

    def __init__(self, reason: str, hint: str = ""):
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def json_documents(
    chunks: Iterable[bytes], path: str, config: CorpusConfig, report: CorpusReport
) -> Iterator[tuple[str | None, str | None]]:
    """Iterates over `(document, None)` or `(anything, the reason to leave it out)`.

    Args:
        chunks: the file's content, decompressed, in blocks of any size.
        path: the file's path, for messages.
        config: the field of the text, and what to do with broken lines.
        report: counts broken lines.

    Raises:
        UserError: a broken line, if they are refused.
    """
    for number, line in enumerate(_lines(chunks), start=1):
        if line is not None and not line.strip():
            continue
        try:
            text = _text(line, config.text_field)
        except BrokenLine as problem:
            if config.broken_lines != SKIP:
                raise UserError(
                    f"{path} line {number}: needs a JSON object with text in the field {config.text_field!r}. "
                    f"Received: {problem.reason}{problem.hint}. Correct the line, or give --text-field NAME "
                    "(data.text_field) if the text has another name, or --broken-lines skip (data.broken_lines: skip) "
                    "to count such lines and go on."
                ) from None
            report.add_broken_line(problem.reason, f"{path} line {number}")
        else:
            yield stripped_document(text)


def _text(line: bytes | None, field: str) -> str:
    """The text of a line. Raises `BrokenLine`."""
    if line is None:
        raise BrokenLine(f"a line over {_LONGEST_LINE >> 20} MB")
    try:
        values = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BrokenLine("not UTF-8", f", byte {line[error.start]:#04x} at {error.start}") from None
    except (ValueError, RecursionError):
        raise BrokenLine("not JSON", f", {_shown(line)}") from None
    if not isinstance(values, dict):
        raise BrokenLine("not an object", f", {_shown(line)}")
    if field not in values:
        raise BrokenLine(f"no field {field!r}", _fields(values))
    text = values[field]
    if not isinstance(text, str):
        raise BrokenLine(f"{field!r} is not text", f", {_shown(json.dumps(text).encode())}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise BrokenLine("text with half a surrogate pair") from None
    return text


def _fields(values: dict[str, Any]) -> str:
    if not values:
        return " in an empty object"
    names = [repr(name) for name in values]
    more = ", …" if len(names) > _MOST_FIELDS_SHOWN else ""
    return f", only {', '.join(names[:_MOST_FIELDS_SHOWN])}{more}"


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 60 else f"{text[:30]} … {text[-25:]}")


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes | None]:
    """The lines without a byte order mark; None for one that is too long."""
    pending, is_cut, is_first = b"", False, True
    for chunk in chunks:
        if is_first:
            chunk, is_first = chunk.removeprefix(_BYTE_ORDER_MARK), False
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            pending += line
            yield None if is_cut or len(pending) > _LONGEST_LINE else pending
            pending, is_cut = b"", False
        pending += rest
        if len(pending) > _LONGEST_LINE:
            pending, is_cut = b"", True
    if pending or is_cut:
        yield None if is_cut else pending
