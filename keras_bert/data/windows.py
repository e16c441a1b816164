"""Groups texts, examples or arrays into lists of about the same size, and says where ranges of arrays begin."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

_MOST = 4096
_CHARACTERS_AT_ONCE = 1 << 20

Item = TypeVar("Item")


def groups(
    items: Iterable[Item], length: Callable[[Item], int], size: int, most: int | None = None
) -> Iterator[list[Item]]:
    """Yields lists of consecutive items; each but the last ends once its lengths add up to `size`, or at `most` items.

    Args:
        length: function (item) -> its length, in the unit of `size`.
    """
    group, seen = [], 0
    for item in items:
        group.append(item)
        seen += length(item)
        if len(group) == most or seen >= size:
            yield group
            group, seen = [], 0
    if group:
        yield group


def windows(
    items: Iterable[Item], length: Callable[[Item], int], characters: int | None = None
) -> Iterator[list[Item]]:
    """`groups` of at most 4,096 items, small enough for memory and large enough to be sorted by length.

    Args:
        items: texts or examples.
        length: function (item) -> its number of characters.
        characters: the number of characters after which a window ends; by default 1,048,576.
    """
    return groups(items, length, characters or _CHARACTERS_AT_ONCE, _MOST)


def offsets(lengths: ArrayLike) -> np.ndarray:
    """Where each of consecutive ranges of these lengths starts, and where the last ends: int64 `[n + 1]`."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


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


def batches_by_length(lengths: np.ndarray, most: int) -> Iterator[np.ndarray]:
    """Yields the indices of each batch's texts: texts of similar length together, the longest first.

    Args:
        lengths: int [texts], each above 0.
        most: the maximum size of a batch of several texts once they are padded, in the unit of `lengths`.
    """
    order = np.argsort(-lengths, kind="stable")
    first = 0
    while first < len(order):
        count = max(1, most // lengths[order[first]])
        yield order[first : first + count]
        first += count
