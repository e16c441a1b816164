"""Exact search, block by block, for the vectors most similar to each query's."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

# Vectors [rows, width]: an array or, over a vocabulary, a sparse one.
Vectors: TypeAlias = Any
Similarity: TypeAlias = Callable[[Vectors, Vectors], np.ndarray]

_SCORES_AT_ONCE = 1 << 22


def nearest(
    queries: Vectors, blocks: Iterable[Vectors], depth: int, similarity: Similarity
) -> tuple[np.ndarray, np.ndarray]:
    """The most similar vectors for each query, the best first; equal ones in their order.

    Args:
        queries: [queries, width].
        blocks: the vectors to search, blocks [rows, width], of which only one is in memory at a time.
        depth: the most vectors to find per query.
        similarity: function (queries, block) -> float32 [queries, rows].

    Returns: (places int64 [queries, found], counted over all blocks; similarities float32 [queries, found]).
    """
    count, first = queries.shape[0], 0
    scores, places = np.zeros((count, 0), "float32"), np.zeros((count, 0), "int64")
    for block in blocks:
        rows = max(1, _SCORES_AT_ONCE // max(1, block.shape[0]))
        found = [
            _best(scores[part], places[part], similarity(queries[part], block), first, depth)
            for part in (slice(start, start + rows) for start in range(0, count, rows))
        ]
        scores, places = (np.concatenate(column) for column in zip(*found, strict=True))
        first += block.shape[0]
    return places, scores


def _best(
    scores: np.ndarray, places: np.ndarray, new: np.ndarray, first: int, depth: int
) -> tuple[np.ndarray, np.ndarray]:
    """Merges the best so far with the new scores, which belong to the places from `first` on."""
    scores = np.concatenate([scores, new], axis=1)
    new_places = np.broadcast_to(np.arange(first, first + new.shape[1]), new.shape)
    places = np.concatenate([places, new_places], axis=1)
    depth = min(depth, scores.shape[1])
    # Sorting all would take several times as long. Among scores equal to the lowest kept one, the first are kept.
    lowest = np.partition(scores, -depth, axis=1)[:, [-depth]]
    above, equal = scores > lowest, scores == lowest
    kept = above | equal & (np.cumsum(equal, axis=1) <= depth - above.sum(axis=1, keepdims=True))
    columns = np.nonzero(kept)[1].reshape(len(scores), depth)
    scores, places = (np.take_along_axis(values, columns, axis=1) for values in (scores, places))
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(places, order, axis=1)


def cosines(queries: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The cosines [queries, rows] of float32, float16 or int8 vectors [queries, width] and [rows, width].

    The products of int8 codes are whole numbers, so equal vectors have equal cosines, whatever the block.
    """
    queries, vectors = queries.astype("float32"), vectors.astype("float32")
    products = queries @ vectors.T
    products /= _lengths(queries)[:, None]
    products /= _lengths(vectors)
    return products


def dot_products(queries: Vectors, vectors: Vectors) -> np.ndarray:
    """The products [queries, rows] of sparse vectors [queries, width] and [rows, width]."""
    return (queries @ vectors.T).toarray()


def _lengths(vectors: np.ndarray) -> np.ndarray:
    return np.maximum(np.linalg.norm(vectors, axis=1), np.finfo("float32").tiny)


def equal_bits(width: int) -> Similarity:
    """Similarity by the share of equal bits; vectors of `width` dimensions are uint8 [rows, ceil(width / 8)]."""

    def similarity(queries: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        signs = [np.unpackbits(bits, axis=1, count=width).astype("float32") * 2 - 1 for bits in (queries, vectors)]
        return (signs[0] @ signs[1].T + width) / (2 * width)

    return similarity
