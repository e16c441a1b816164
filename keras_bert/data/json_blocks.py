"""JSON that is read as it comes: the items of long lists one by one, so that a file of any size fits in memory."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

_SPACES = re.compile(r"[ \t\n\r]*")
# What ends so near to the end of what has come may go on in the next block: a literal, a number, an escape.
_LONGEST_TOKEN = 16


class JsonBlocks:
    """A JSON text out of blocks of it, with a place that moves on over what is read.

    An object or a list is entered by iterating over `members` or `items`; each of what is inside must be read, by
    `value` or by entering it, before the next is asked for.

    Args:
        blocks: the text in pieces, cut anywhere.

    Raises:
        json.JSONDecodeError: with the line and the column in the whole text; from every method.
    """

    def __init__(self, blocks: Iterable[str]):
        self._blocks = iter(blocks)
        self._text, self._place = "", 0
        self._lines, self._columns = 0, 0  # Of what is no longer in `_text`.
        self._decode = json.JSONDecoder().raw_decode

    def kind(self) -> str:
        """The first character of the next value: "{" of an object, "[" of a list; "" at the end."""
        while True:
            self._place = _SPACES.match(self._text, self._place).end()
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more():
                return ""

    def value(self) -> Any:
        """The next value, whole."""
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
        """The names of an object's members; before each next one the member's value must be read."""
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
        """The numbers of a list's items, from 0; before each next one the item must be read."""
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

    def end(self):
        """Raises `json.JSONDecodeError` unless nothing but white space is left."""
        if self.kind():
            raise self._error("Extra data", self._place)

    def _take(self, characters):
        """Moves over the next character, one of these, and returns it."""
        found = self.kind()
        if not found or found not in characters:
            raise self._error("Expecting " + " or ".join(map(repr, characters)), self._place)
        self._place += 1
        return found

    def _more(self):
        """Whether more of the text has come: at least as much again as waits, so that nothing is read often."""
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

    def _error(self, message, place):
        """The error of a place in `_text`, told by its place in the whole."""
        before = self._text[:place]
        error = json.JSONDecodeError(message, self._text, place)
        error.lineno = 1 + self._lines + before.count("\n")
        error.colno = place - before.rfind("\n") + (0 if "\n" in before else self._columns)
        return error
