"""The few static shapes that rows of many lengths are batched in."""

import numpy as np

from keras_bert.data.batches.token_rows import TokenRows

# For a single pass over the rows: more shapes would take longer to trace than they save.
FEW_SHAPES = 4


def choose_widths(lengths: np.ndarray, most: int = 8, multiple: int = 2) -> list[int]:
    """The static sequence lengths, ascending, with the least padding when each row is padded to the next width.

    Args:
        lengths: int [rows], tokens of each row.
        most: the most widths to choose; each is compiled once.
        multiple: every width is a multiple of this.
    """
    counts = np.bincount(-(-np.asarray(lengths) // multiple))
    rounded, counts = np.flatnonzero(counts) * multiple, counts[counts > 0]
    # cost[k, j]: tokens, padding included, of all rows up to the j-th length in k widths, the j-th length the last.
    below = np.concatenate([[0], np.cumsum(counts)])
    most = min(most, len(rounded))
    cost = np.full((most + 1, len(rounded) + 1), np.inf)
    before = np.zeros(cost.shape, int)
    cost[:, 0] = 0.0
    for widths in range(1, most + 1):
        for last in range(1, len(rounded) + 1):
            candidates = cost[widths - 1, :last] + (below[last] - below[:last]) * rounded[last - 1]
            before[widths, last] = np.argmin(candidates)
            cost[widths, last] = candidates[before[widths, last]]
    chosen, last = [], len(rounded)
    for widths in range(most, 0, -1):
        if last == 0:
            break
        chosen.append(int(rounded[last - 1]))
        last = before[widths, last]
    return chosen[::-1]


def choose_shapes(rows: TokenRows, most: int = 8) -> tuple[list[int], list[int]]:
    """(widths, group sizes), both ascending: the static shapes with the least padding.

    Args:
        rows: the rows to batch.
        most: the most pairs of a width and a group size; each is compiled once.
    """
    lengths, sizes = rows.lengths, rows.group_sizes
    choices = []
    for most_sizes in range(1, min(most, len(np.unique(sizes))) + 1):
        group_sizes = choose_widths(sizes, most_sizes, multiple=1)
        widths = choose_widths(lengths, most // most_sizes)
        tokens = np.dot(
            np.take(widths, np.searchsorted(widths, lengths)),
            np.take(group_sizes, np.searchsorted(group_sizes, sizes)),
        )
        choices.append((tokens, widths, group_sizes))
    _, widths, group_sizes = min(choices, key=lambda choice: choice[0])
    return widths, group_sizes
