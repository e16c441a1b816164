"""Groups a stream of examples into windows, small enough for memory and large enough to be sorted by length."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

_MOST = 4096
_CHARACTERS_AT_ONCE = 1 << 20

Item = TypeVar("Item")


def windows(
    items: Iterable[Item], length: Callable[[Item], int], characters: int | None = None
) -> Iterator[list[Item]]:
    """Yields lists of consecutive items, each of at most 4,096.

    Args:
        items: texts or examples.
        length: function (item) -> its number of characters.
        characters: the number of characters after which a window ends; by default 1,048,576.
    """
    characters = characters or _CHARACTERS_AT_ONCE
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
    """Yield (first item, one past the last) of each block; for no items, a single empty block.

    Args:
        starts: int [items + 1], where each item starts and the last one ends, in the unit of `most`.
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
