"""Groups a stream of examples into windows, small enough for memory and large enough to be sorted by length."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

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


def blocks(starts: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """(first item, one past the last) of each block; a single empty block for no items.

    Args:
        starts: int [items + 1], where each item starts in what is counted.
        most: the maximum size of a block of several items.
    """
    first, items = 0, len(starts) - 1
    while True:
        end = int(np.searchsorted(starts, starts[first] + most, side="right")) - 1
        end = min(max(end, first + 1), items)
        yield first, end
        if end == items:
            return
        first = end
