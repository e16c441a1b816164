"""Groups a stream of examples into windows, small enough for memory and large enough to be sorted by length."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_MOST = 4096

Item = TypeVar("Item")


def windows(items: Iterable[Item], characters: int, length: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Yields lists of consecutive items, each of about `characters` characters but at most 4,096 items.

    Args:
        items: texts or examples.
        characters: the number of characters after which a window ends.
        length: function (item) -> its number of characters.
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
