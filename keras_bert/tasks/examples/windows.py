"""Examples that come one by one, in windows: small enough for memory, large enough to be sorted by length."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

_MOST = 4096


def windows(items: Iterable, characters: int, length: Callable[[Any], int] = len) -> Iterator[list]:
    """Lists of the items in their order, each of several thousand or of about so many characters.

    Args:
        items: texts, or what `length` knows the characters of.
        characters: after how many a window ends.
        length: function (item) -> characters.
    """
    window, seen = [], 0
    for item in items:
        window.append(item)
        seen += length(item)
        if len(window) == _MOST or seen >= characters:
            yield window
            window, seen = [], 0
    if window:
        yield window
