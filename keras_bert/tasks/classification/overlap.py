"""A lexical baseline of whether two texts mean the same: the share of pieces that they have in common."""

from collections.abc import Collection

import numpy as np

from keras_bert.data.batches.token_rows import TokenRows


def shared_pieces(rows: TokenRows, special: Collection[int]) -> np.ndarray:
    """The Jaccard similarity of the sets of pieces of each row's two texts: float64 [rows].

    Args:
        special: the ids of special tokens, which do not count.
    """
    count, ids = len(rows.second_starts), rows.ids.astype(np.int64)
    numbers = np.repeat(np.arange(count), np.diff(rows.starts))
    is_second = np.arange(len(ids)) - rows.starts[numbers] >= rows.second_starts[numbers]
    base = int(ids.max(initial=0)) + 1
    tagged_pieces = np.unique(((numbers * base + ids) * 2 + is_second)[~np.isin(ids, list(special))])
    pieces, texts = np.unique(tagged_pieces // 2, return_counts=True)
    different = np.bincount(pieces // base, minlength=count)
    return np.bincount(pieces // base, weights=texts == 2, minlength=count) / np.maximum(different, 1)


def fitted_threshold(shares: np.ndarray, labels: np.ndarray) -> tuple[float, int]:
    """The (threshold, class of the shares at or above it) with the most right answers.

    Args:
        shares: float [examples].
        labels: int [examples] of 0 and 1.
    """
    values, places = np.unique(shares, return_inverse=True)
    counts = np.stack([np.bincount(places[labels == label], minlength=len(values)) for label in (0, 1)])
    below = np.cumsum(counts, axis=1) - counts
    at_or_above = counts.sum(axis=1, keepdims=True) - below
    right = at_or_above + below[::-1]  # [class at or above it, threshold]
    label, index = np.unravel_index(right.argmax(), right.shape)
    return float(values[index]), int(label)
