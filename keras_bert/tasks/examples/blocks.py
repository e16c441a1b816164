"""Items of different sizes in blocks of about one size: small enough for memory, large enough to be fast."""

from collections.abc import Iterator

import numpy as np


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
