"""Rows in JSON: an object a line, a list of objects, or pandas' object of columns."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from keras_bert.data.corpus.text_lines import decoded_blocks
from keras_bert.data.json_blocks import JsonBlocks
from keras_bert.data.tables.rows import Reading, Row
from keras_bert.errors import UserError

LINES, JSON = "jsonl", "json"
_LONGEST_LINE = 1 << 26  # In bytes. A longer line is broken, so that memory stays bounded.
_MOST_FIELDS_SHOWN = 5
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OBJECT = re.compile(r'\{\s*"')
# A list of objects or an empty one; pandas' columns, of values by row; or an object over several lines.
_NOT_LINES = re.compile(r'\[\s*[{\]]|\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\{\s*"\d+"\s*:|\{\s*\n')


def is_json(start: str) -> bool:
    """Whether a file that begins like this is JSON."""
    return bool(_OBJECT.match(start) or _NOT_LINES.match(start))


def json_format(start: str) -> str:
    """Whether a file of JSON has `LINES`, or is a single `JSON` value."""
    return JSON if _NOT_LINES.match(start) else LINES


class _BrokenValue(Exception):
    """Why a value is no row; `hint` adds what was found instead."""

    def __init__(self, reason: str, hint: str = ""):
        super().__init__(reason)
        self.reason, self.hint = reason, hint


def json_line_rows(path: str, chunks: Iterable[bytes], reading: Reading) -> Iterator[Row]:
    """Iterates over the rows of JSON lines; cells have the values as parsed.

    Args:
        path: the file's name, for messages.
        chunks: its content, decompressed, in blocks of any size.
        reading: what is read.

    Raises:
        UserError: a line is broken and not skipped, or there is none.
    """
    return _rows(path, "line", ((number, _parsed, line) for number, line in _numbered(chunks)), reading)


def json_rows(path: str, chunks: Iterable[bytes], reading: Reading) -> Iterator[Row]:
    """As `json_line_rows`, from a list of objects; or from an object of columns, which is held in memory whole."""
    content = JsonBlocks(decoded_blocks(chunks))
    try:
        if content.kind() == "[":
            values = ((number + 1, _same, content.value()) for number in content.items())
            yield from _rows(path, "row", values, reading)
        else:
            columns = content.value()
            if not all(isinstance(column, dict) for column in columns.values()):
                raise UserError(
                    f"{path}: needs a list of objects, objects a line, or columns as objects. Received: an object of "
                    f"{', '.join(map(repr, list(columns)[:_MOST_FIELDS_SHOWN])) or 'nothing'}."
                )
            places = reading.places(path, list(columns))
            kept = [None if place is None else list(columns.values())[place] for place in places]
            for number, key in enumerate(kept[0] or (), 1):
                yield Row(number, tuple(None if column is None else column.get(key) for column in kept), f"{path} row")
        content.end()
    except json.JSONDecodeError as error:
        raise UserError(f"{path} line {error.lineno}: needs JSON. Received: {error.msg}.") from None
    except RecursionError:
        raise UserError(f"{path}: needs JSON. Received: lists nested too deep.") from None


def _rows(path: str, unit: str, values: Iterable[tuple[int, Any, Any]], reading: Reading) -> Iterator[Row]:
    """The rows of (number, function that makes the value of what was read, what was read)."""
    within, keys = f"{path} {unit}", None
    number = 0
    for number, parsed, read in values:
        try:
            value = parsed(read)
            if not isinstance(value, dict):
                raise _BrokenValue("not an object", f", {_shown(json.dumps(value).encode())}")
            keys = keys or (*reading.wanted, *(name for name in reading.optional if name in value))
            for name in keys:
                if name not in value:
                    raise _BrokenValue(f"no field {name!r}", _fields(value))
        except _BrokenValue as problem:
            remedy = f", or name the field with {reading.options}" if reading.options else ""
            reading.broken(
                problem.reason,
                f"{within} {number}",
                f"{within} {number}: needs a JSON object with {', '.join(map(repr, keys or reading.wanted))}. "
                f"Received: {problem.reason}{problem.hint}. Correct it{remedy}.",
            )
        else:
            yield Row(number, tuple(map(value.get, (*reading.wanted, *reading.optional))), within)
    if not number:
        raise UserError(f"{path}: needs a table. Received: an empty file.")


def _same(value: object) -> object:
    return value


def _parsed(line: bytes | None) -> Any:
    """The value of a line. Raises `_BrokenValue`."""
    if line is None:
        raise _BrokenValue(f"a line over {_LONGEST_LINE >> 20} MB")
    try:
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _BrokenValue("not UTF-8", f", byte {line[error.start]:#04x} at {error.start}") from None
    except (ValueError, RecursionError):
        raise _BrokenValue("not JSON", f", {_shown(line)}") from None


def _fields(values: dict[str, Any]) -> str:
    if not values:
        return " in an empty object"
    names = [repr(name) for name in values]
    more = ", …" if len(names) > _MOST_FIELDS_SHOWN else ""
    return f", only {', '.join(names[:_MOST_FIELDS_SHOWN])}{more}"


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 60 else f"{text[:30]} … {text[-25:]}")


def _numbered(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """(number, line) of the lines that are not blank."""
    for number, line in enumerate(_lines(chunks), start=1):
        if line is None or line.strip():
            yield number, line


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
