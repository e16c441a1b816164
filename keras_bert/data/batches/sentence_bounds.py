"""Where the sentences of a shard start, once those too long for a row are divided."""

import numpy as np


def divide_long_sentences(
    sentences: np.ndarray, documents: np.ndarray, max_tokens: int
) -> tuple[np.ndarray, np.ndarray]:
    """Divides every sentence into pieces of at most `max_tokens`; a piece then counts as a sentence.

    Args:
        sentences: int [sentences + 1], where each sentence starts in the tokens.
        documents: int [documents + 1], where each document starts in the sentences.
        max_tokens: at least 1.

    Returns:
        (bounds int64 [n + 1], like `sentences`; `documents` for these bounds, without documents that have no token).
    """
    sentences = np.asarray(sentences, np.int64)
    pieces = -(-np.diff(sentences) // max_tokens)
    piece = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    bounds = np.append(np.repeat(sentences[:-1], pieces) + piece * max_tokens, sentences[-1])
    return bounds, np.searchsorted(bounds, np.unique(sentences[documents]))
