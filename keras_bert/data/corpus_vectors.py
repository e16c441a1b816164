"""Vectors of pieces from co-occurrence counts in a corpus: directional PPMI and a truncated SVD.

Positive pointwise mutual information with smoothed contexts, as in Levy, Goldberg and Dagan 2015, with left and right
neighbours counted separately. Interchangeable pieces get similar vectors (london, paris; ##ing, ##ed), which is what
the masked LM's tied decoder needs; a single symmetric window would instead group pieces of the same topic.
"""

from collections.abc import Iterable

import numpy as np
import scipy.sparse

from keras_bert.data.windows import groups

# Levy et al., section 3.3: without it, rare contexts have the highest mutual information.
CONTEXT_POWER = 0.75
# The vector of a rarer piece would reflect little more than a single sentence.
FEWEST_OCCURRENCES = 5
_POWER_ITERATIONS = 3
_TOKENS_AT_ONCE = 1 << 22  # Enough to be worth a matrix of their own.


def corpus_vectors(
    tokens: Iterable[np.ndarray], vocab_size: int, width: int, window: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """Counts the pieces of a text and computes a vector for each. The same text gives the same vectors.

    Args:
        tokens: arrays of ids [n], integers less than `vocab_size`, read once.
        vocab_size: rows of the result.
        width: columns of the result, at most `vocab_size`.
        window: how many neighbours are counted on either side of a piece.

    Returns: (counts int64 [vocab_size], vectors float32 [vocab_size, width]). A vector has length 1, or is 0 if the
        piece occurs fewer than `FEWEST_OCCURRENCES` times.
    """
    # Takes a second to import.
    from sklearn.utils.extmath import randomized_svd

    counts, neighbours = _count(tokens, vocab_size, window)
    information = scipy.sparse.hstack([_ppmi(neighbours), _ppmi(neighbours.T.tocsr())], format="csr")
    del neighbours
    left, singular_values, _ = randomized_svd(information, width, n_iter=_POWER_ITERATIONS, random_state=0)
    vectors = left * np.sqrt(singular_values)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    is_known = (counts[:, None] >= FEWEST_OCCURRENCES) & (lengths > 0)
    return counts, np.where(is_known, vectors / np.where(is_known, lengths, 1.0), 0.0).astype(np.float32)


def count_tokens(tokens: Iterable[np.ndarray], vocab_size: int) -> np.ndarray:
    """How often each piece occurs in the arrays of ids: int64 [vocab_size]."""
    return sum((np.bincount(part, minlength=vocab_size) for part in tokens), np.zeros(vocab_size, np.int64))


def _count(tokens: Iterable[np.ndarray], vocab_size: int, window: int) -> tuple[np.ndarray, scipy.sparse.csr_matrix]:
    """(counts int64 [vocab], right neighbours as float32 CSR [vocab, vocab]; a pair at distance d counts 1/d)."""
    counts = np.zeros(vocab_size, np.int64)
    neighbours = scipy.sparse.csr_matrix((vocab_size, vocab_size), dtype=np.float32)
    for arrays in groups(tokens, len, _TOKENS_AT_ONCE):
        part = np.concatenate(arrays, dtype=np.int32)
        counts += np.bincount(part, minlength=vocab_size)
        for distance in range(1, window + 1):
            pairs = (part[:-distance], part[distance:])
            weights = np.full(len(pairs[0]), 1.0 / distance, np.float32)
            neighbours += scipy.sparse.coo_matrix((weights, pairs), neighbours.shape).tocsr()
    return counts, neighbours


def _ppmi(counts: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """Positive pointwise mutual information of rows and columns: float32 CSR of the shape of `counts`."""
    rows = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
    contexts = np.asarray(counts.sum(axis=0, dtype=np.float64)).ravel() ** CONTEXT_POWER
    expected = np.repeat(rows, np.diff(counts.indptr)) * contexts[counts.indices] / contexts.sum()
    information = counts.copy()
    information.data = np.maximum(np.log(counts.data / expected), 0.0).astype(np.float32)
    information.eliminate_zeros()
    return information
