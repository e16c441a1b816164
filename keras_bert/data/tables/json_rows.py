"""Rows in JSON: an object a line, a list of objects, or pandas' object of columns."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from typing import Any

from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import parse_json
from keras_bert.data.corpus.text_lines import decoded_blocks
from keras_bert.data.tables.rows import Reading, Row, picked
from keras_bert.data.windows import groups

_SPACES = re.compile(r"[ \t\n\r]*")
# A literal, a number or an escape that ends this close to the end of the buffer may continue in the next block.
_LONGEST_TOKEN = 16


class JsonBlocks:
    """A JSON text that arrives in blocks, with a read position.

    Enter an object or a list by iterating over `members` or `items`; read each value inside, with `value` or by
    entering it, before asking for the next.

    Args:
        blocks: the text in pieces, split anywhere.

    Raises:
        json.JSONDecodeError: from every method, with the line and column in the whole text.
    """

    def __init__(self, blocks: Iterable[str]):
        self._blocks = iter(blocks)
        self._text, self._place = "", 0
        self._lines, self._columns = 0, 0  # Of the text that has already left `_text`.
        self._decode = json.JSONDecoder().raw_decode

    def kind(self) -> str:
        """The first character of the next value: "{" for an object, "[" for a list; "" at the end."""
        while True:
            self._place = _SPACES.match(self._text, self._place).end()  # type: ignore[union-attr]
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more():
                return ""

    def value(self) -> Any:
        """The whole next value."""
        self.kind()
        while True:
            try:
                value, end = self._decode(self._text, self._place)
                if end < len(self._text) - _LONGEST_TOKEN or not self._more():
                    self._place = end
                    return value
            except json.JSONDecodeError as error:
                goes_on = error.pos >= len(self._text) - _LONGEST_TOKEN or error.msg.startswith("Unterminated string")
                if not goes_on or not self._more():
                    raise self._error(error.msg, error.pos) from None
            except ValueError:  # Python refuses integers of more than 4300 digits.
                raise self._error("Integer of too many digits", self._place) from None

    def members(self) -> Iterator[str]:
        """The names of an object's members; read each member's value before asking for the next name."""
        self._take("{")
        if self.kind() == "}":
            self._place += 1
            return
        while True:
            if self.kind() != '"':
                raise self._error("Expecting property name enclosed in double quotes", self._place)
            name = self.value()
            self._take(":")
            yield name
            if self._take(",}") == "}":
                return

    def items(self) -> Iterator[int]:
        """The indices of a list's items, from 0; read each item before asking for the next index."""
        self._take("[")
        if self.kind() == "]":
            self._place += 1
            return
        for number in count():
            yield number
            if self._take(",]") == "]":
                return

    def end(self) -> None:
        """Raises `json.JSONDecodeError` if anything but white space is left."""
        if self.kind():
            raise self._error("Extra data", self._place)

    def _take(self, characters: str) -> str:
        """Consumes the next character, which must be one of `characters`, and returns it."""
        found = self.kind()
        if not found or found not in characters:
            raise self._error("Expecting " + " or ".join(map(repr, characters)), self._place)
        self._place += 1
        return found

    def _more(self) -> bool:
        """Reads more of the text and returns whether there was any.

        It at least doubles the text in memory that is not decoded yet, so that long values are not decoded too often.
        """
        read, waiting = self._text[: self._place], self._text[self._place :]
        blocks = next(groups(self._blocks, len, len(waiting)), [])
        if not blocks:
            return False
        self._lines += read.count("\n")
        self._columns = len(read) - read.rfind("\n") - 1 + (0 if "\n" in read else self._columns)
        self._text, self._place = "".join([waiting, *blocks]), 0
        return True

    def _error(self, message: str, place: int) -> json.JSONDecodeError:
        """The error at a position in `_text`, with its line and column in the whole text."""
        before = self._text[:place]
        error = json.JSONDecodeError(message, self._text, place)
        error.lineno = 1 + self._lines + before.count("\n")
        error.colno = place - before.rfind("\n") + (0 if "\n" in before else self._columns)
        return error


LINES, JSON = "jsonl", "json"
_LONGEST_LINE = 1 << 26  # In bytes. A longer line is broken, so that memory stays bounded.
_MOST_FIELDS_SHOWN = 5
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OBJECT = re.compile(r'\{\s*"')
# A list of objects or an empty one; pandas' columns, of values by row; or an object over several lines.
_NOT_LINES = re.compile(r'\[\s*[{\]]|\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\{\s*"\d+"\s*:|\{\s*\n')


def is_json(start: str) -> bool:
    """Whether a file that begins with `start` is JSON."""
    return bool(_OBJECT.match(start) or _NOT_LINES.match(start))


def json_format(start: str) -> str:
    """The format of a JSON file that begins with `start`: `LINES`, or `JSON` for a single value."""
    return JSON if _NOT_LINES.match(start) else LINES


class _BrokenValue(Exception):
    """A value is no row: `reason` says why, `hint` what was found instead."""

    def __init__(self, reason: str, hint: str = ""):
        super().__init__(reason)
        self.reason, self.hint = reason, hint


def json_line_rows(path: str, chunks: Iterable[bytes], reading: Reading) -> Iterator[Row]:
    """Iterates over the rows of JSON lines; cells have the values as parsed.

    Args:
        path: the file's name, for messages.
        chunks: its content, decompressed, in blocks of any size.

    Raises:
        UserError: a line is broken and not skipped, or there is none.
    """
    lines = enumerate(_lines(chunks), start=1)
    values = ((number, partial(_parsed, line)) for number, line in lines if line is None or line.strip())
    return _rows(path, "line", values, reading)


def json_rows(path: str, chunks: Iterable[bytes], reading: Reading) -> Iterator[Row]:
    """Like `json_line_rows`, but from a list of objects, or from an object of columns, which is read into memory."""
    content = JsonBlocks(decoded_blocks(chunks))
    try:
        if content.kind() == "[":
            yield from _rows(path, "row", ((number + 1, content.value) for number in content.items()), reading)
        else:
            columns = content.value()
            if not isinstance(columns, dict) or not all(isinstance(column, dict) for column in columns.values()):
                if isinstance(columns, dict):
                    names = ", ".join(map(repr, list(columns)[:_MOST_FIELDS_SHOWN]))
                    received = f"an object of {names or 'nothing'}"
                else:
                    received = _shown(json.dumps(columns).encode())
                raise UserError(
                    f"{path}: needs a list of objects, objects a line, or columns as objects. Received: {received}."
                )
            kept = picked(list(columns.values()), reading.places(path, list(columns)))
            for number, key in enumerate(kept[0] or (), 1):
                yield Row(number, tuple(None if column is None else column.get(key) for column in kept), f"{path} row")
        content.end()
    except json.JSONDecodeError as error:
        raise UserError(f"{path} line {error.lineno}: needs JSON. Received: {error.msg}.") from None
    except RecursionError:
        raise UserError(f"{path}: needs JSON. Received: lists nested too deep.") from None


def _rows(path: str, unit: str, values: Iterable[tuple[int, Callable[[], Any]]], reading: Reading) -> Iterator[Row]:
    """Yield the rows of `values`: (number, function that returns the JSON value)."""
    within, keys = f"{path} {unit}", None
    number = 0
    for number, read in values:
        try:
            value = read()
            if not isinstance(value, dict):
                raise _BrokenValue("not an object", f", {_shown(json.dumps(value).encode())}")
            required = () if reading.optional_in_rows else reading.optional
            keys = keys or (*reading.wanted, *(name for name in required if name in value))
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


def _parsed(line: bytes | None) -> Any:
    """The value of a line. Raises `_BrokenValue`."""
    if line is None:
        raise _BrokenValue(f"a line over {_LONGEST_LINE >> 20} MB")
    try:
        return parse_json(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _BrokenValue("not UTF-8", f", byte {line[error.start]:#04x} at {error.start}") from None
    except ValueError:
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


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes | None]:
    """The lines without a byte order mark; None for one that is too long."""
    pending: list[bytes] = []  # Parts of an unfinished line; joined once, because each join copies them.
    length, is_cut, is_first = 0, False, True
    for chunk in chunks:
        if is_first:
            chunk, is_first = chunk.removeprefix(_BYTE_ORDER_MARK), False
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*pending, lines[0]])
            pending, length = [], 0
        for line in lines:
            yield None if is_cut or len(line) > _LONGEST_LINE else line
            is_cut = False
        pending.append(rest)
        length += len(rest)
        if length > _LONGEST_LINE:
            pending, length, is_cut = [], 0, True
    if length or is_cut:
        yield None if is_cut else b"".join(pending)
