"""Sentences packed into rows, planned as spans of a shard's tokens (RoBERTa, Liu et al. 2019, section 4.2).

A row is [CLS], then one span for each document in it, each with its [SEP]. With whole sentences and one document per
row this is DOC-SENTENCES; with more it is FULL-SENTENCES, where that [SEP] is the paper's extra separator between
documents. Filled rows may end within a sentence, which leaves hardly any padding.
"""

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


_TOKENS_A_DOCUMENT = 16


def most_documents(packing: str, sequence_length: int) -> int:
    """How many documents a row may contain: 1 for "document"; else one for every 16 tokens, at least 2.

    There has to be a limit, because a plan has a fixed number of columns.
    """
    return 1 if packing == "document" else max(2, sequence_length // _TOKENS_A_DOCUMENT)


def plan_packed(
    sentences: np.ndarray, documents: np.ndarray, sequence_length: int, documents_in_row: int, fills: bool = False
) -> np.ndarray:
    """Plans one pass over a shard: rows as long as possible, in the order of the text, with every token in one row.

    Nothing is random: the rows are the same in every epoch; only their order and masks differ.

    Args:
        sentences: int [sentences + 1], where each sentence starts in the tokens.
        documents: int [documents + 1], where each document starts in the sentences.
        sequence_length: the length of a row, with [CLS] and every [SEP]; at least 3.
        documents_in_row: see `most_documents`.
        fills: whether a row may end within a sentence; otherwise only sentences longer than a row are divided.

    Returns:
        int32 [rows, 2 * documents_in_row + 1]: start and end of each span, both 0 if unused, and a label of 0.
    """
    if sequence_length < 3:
        raise ValueError(f"sequence_length: needs at least 3, [CLS], a token and [SEP]. Received: {sequence_length}.")
    if fills:
        edges = np.unique(np.asarray(sentences, np.int64)[documents])
        starts = np.array(_filled_rows(edges.tolist(), sequence_length, documents_in_row), np.int64)
    else:
        bounds, documents = divide_long_sentences(sentences, documents, sequence_length - 2)
        edges = bounds[documents]
        starts = bounds[_rows_of_sentences(bounds, documents, sequence_length, documents_in_row)]
    ends = np.append(starts[1:], edges[-1])[: len(starts)]

    number = (np.searchsorted(edges, starts, "right") - 1)[:, None] + np.arange(documents_in_row)
    is_used = number < np.searchsorted(edges, ends, "left")[:, None]
    number = np.minimum(number, len(edges) - 2)
    span_starts = np.maximum(starts[:, None], edges[number])
    span_ends = np.minimum(ends[:, None], edges[number + 1])
    spans = np.where(is_used[:, :, None], np.stack([span_starts, span_ends], axis=2), 0)
    return np.pad(spans.reshape(len(starts), 2 * documents_in_row), [(0, 0), (0, 1)]).astype(np.int32)


def _rows_of_sentences(
    bounds: np.ndarray, documents: np.ndarray, sequence_length: int, documents_in_row: int
) -> np.ndarray:
    """The first sentence of each row, int64 [rows]; `bounds` are the sentences' starts and `documents` theirs."""
    document_count = len(documents) - 1
    document_of = np.repeat(np.arange(document_count), np.diff(documents))
    # Positions in a text with a [SEP] after each document; their differences are the lengths of rows.
    starts, ends = bounds[:-1] + document_of, bounds[1:] + document_of
    following = np.searchsorted(ends, starts + sequence_length - 2, "right")
    following = np.minimum(following, documents[np.minimum(document_of + documents_in_row, document_count)])
    return np.array(_chain(following.tolist()), np.int64)


def _filled_rows(edges: list[int], sequence_length: int, documents_in_row: int) -> list[int]:
    """The first token of each row; `edges` are the first tokens of the documents, and the end of the last one."""
    starts, token, document, count = [], 0, 0, len(edges) - 1
    while token < edges[-1]:
        while edges[document + 1] <= token:
            document += 1
        starts.append(token)
        # In a text with a [SEP] after each document, a row reaches to this position. `last` is its last document.
        limit, last = token + document + sequence_length - 2, document
        while last + 1 < min(document + documents_in_row, count) and edges[last + 1] + last + 2 <= limit:
            last += 1
        token = min(limit - last, edges[last + 1])
    return starts


def _chain(following: list[int]) -> list[int]:
    """0, its successor, the successor of that, … to the end."""
    chain, place = [], 0
    while place < len(following):
        chain.append(place)
        place = following[place]
    return chain
