"""Reads JSON as a stream, the items of long lists one by one, so that files of any size fit in memory."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

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
        number = 0
        while True:
            yield number
            number += 1
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

        It reads at least as much as is still unread, so that no part of a long value is decoded often.
        """
        read, waiting = self._text[: self._place], self._text[self._place :]
        blocks, wanted = [], len(waiting)
        for block in self._blocks:
            blocks.append(block)
            wanted -= len(block)
            if wanted <= 0:
                break
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
