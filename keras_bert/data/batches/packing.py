"""Whole sentences packed into rows, planned as spans of a shard's tokens (RoBERTa, Liu et al. 2019, section 4.2).

A row is [CLS], then one span for each document in it, each with its [SEP]. With one document per row this is
DOC-SENTENCES; with more it is FULL-SENTENCES, where that [SEP] is the paper's extra separator between documents.
"""

import numpy as np

from keras_bert.data.batches.sentence_bounds import divide_long_sentences

_TOKENS_A_DOCUMENT = 16


def most_documents(packing: str, sequence_length: int) -> int:
    """How many documents a row may contain: 1 for "document"; for "full", one for every 16 tokens, at least 2.

    There has to be a limit, because a plan has a fixed number of columns.
    """
    return 1 if packing == "document" else max(2, sequence_length // _TOKENS_A_DOCUMENT)


def plan_packed(
    sentences: np.ndarray, documents: np.ndarray, sequence_length: int, documents_in_row: int
) -> np.ndarray:
    """Plans one pass over a shard: rows as long as possible, in the order of the text, with every token in one row.

    Sentences longer than a row are divided first. Nothing is random: the rows are the same in every epoch; only their
    order and masks differ.

    Args:
        sentences: int [sentences + 1], where each sentence starts in the tokens.
        documents: int [documents + 1], where each document starts in the sentences.
        sequence_length: the length of a row, with [CLS] and every [SEP]; at least 3.
        documents_in_row: see `most_documents`.

    Returns:
        int32 [rows, 2 * documents_in_row + 1]: start and end of each span, both 0 if unused, and a label of 0.
    """
    if sequence_length < 3:
        raise ValueError(f"sequence_length: needs at least 3, [CLS], a token and [SEP]. Received: {sequence_length}.")
    bounds, documents = divide_long_sentences(sentences, documents, sequence_length - 2)
    document_count = len(documents) - 1
    document_of = np.repeat(np.arange(document_count), np.diff(documents))
    # Positions in a text with a [SEP] after each document; their differences are the lengths of rows.
    starts, ends = bounds[:-1] + document_of, bounds[1:] + document_of
    following = np.searchsorted(ends, starts + sequence_length - 2, "right")
    following = np.minimum(following, documents[np.minimum(document_of + documents_in_row, document_count)])
    first = np.array(_chain(following.tolist()), np.int64)
    after = np.append(first[1:], len(document_of))[: len(first)]

    number = document_of[first][:, None] + np.arange(documents_in_row)
    is_used = number <= document_of[after - 1][:, None]
    number = np.minimum(number, document_count - 1)
    span_starts = np.maximum(bounds[first][:, None], bounds[documents[number]])
    span_ends = np.minimum(bounds[after][:, None], bounds[documents[number + 1]])
    spans = np.where(is_used[:, :, None], np.stack([span_starts, span_ends], axis=2), 0)
    return np.pad(spans.reshape(len(first), 2 * documents_in_row), [(0, 0), (0, 1)]).astype(np.int32)


def _chain(following: list[int]) -> list[int]:
    """0, its successor, the successor of that, … to the end."""
    chain, place = [], 0
    while place < len(following):
        chain.append(place)
        place = following[place]
    return chain
