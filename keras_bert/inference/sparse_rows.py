"""Vectors that are mostly 0, as SciPy's sparse rows."""

import numpy as np
from scipy.sparse import csr_array


def largest_values(vectors: csr_array, size: int) -> csr_array:
    """Keeps at most the `size` largest values of each vector [rows, width]; among equal ones, the first."""
    lengths = np.diff(vectors.indptr)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((vectors.indices, -vectors.data, rows))  # By row, then the largest first.
    rank = np.arange(len(order)) - np.repeat(vectors.indptr[:-1], lengths)
    kept = np.sort(order[rank < size])
    starts = np.concatenate([[0], np.cumsum(np.minimum(lengths, size))])
    return csr_array((vectors.data[kept], vectors.indices[kept], starts), vectors.shape)


def dot_products(queries: csr_array, vectors: csr_array) -> np.ndarray:
    """The products [queries, rows] of sparse vectors [queries, width] and [rows, width]."""
    return (queries @ vectors.T).toarray()
