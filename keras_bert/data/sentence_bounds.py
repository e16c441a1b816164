"""Where the sentences of a shard begin, once those too long for a row are divided."""

import numpy as np


def divide_long_sentences(sentences, documents, max_tokens):
    """Cuts every sentence into pieces of at most `max_tokens`; a piece then counts as a sentence.

    Args:
        sentences: int [sentences + 1], where each sentence begins in the tokens.
        documents: int [documents + 1], where each document begins in the sentences.
        max_tokens: int, at least 1.

    Returns:
        bounds int64 [n + 1], as `sentences`, and the first place in them of each document that has a token.
    """
    sentences = np.asarray(sentences, np.int64)
    pieces = -(-np.diff(sentences) // max_tokens)
    piece = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    bounds = np.append(np.repeat(sentences[:-1], pieces) + piece * max_tokens, sentences[-1])
    return bounds, np.searchsorted(bounds, np.unique(sentences[documents]))
