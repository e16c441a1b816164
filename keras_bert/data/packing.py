"""Whole sentences packed into rows, planned as spans of a shard's tokens (RoBERTa, Liu et al. 2019, section 4.2).

A row is [CLS], then one span for each document that it touches, each with its [SEP]. With one document a row it is
DOC-SENTENCES, with more FULL-SENTENCES, where that [SEP] is the paper's extra separator between documents.
"""

import numpy as np

from keras_bert.data.sentence_bounds import divide_long_sentences

_TOKENS_A_DOCUMENT = 16


def most_documents(packing, sequence_length):
    """How many documents a row may touch: 1 for "document"; for "full" as many as have 16 tokens, at least 2.

    Some bound is needed, because the rows of a plan have a fixed number of columns.
    """
    return 1 if packing == "document" else max(2, sequence_length // _TOKENS_A_DOCUMENT)


def plan_packed(sentences, documents, sequence_length, documents_in_row):
    """Plans one pass over a shard: rows as long as they can be, in the order of the text, every token in one of them.

    A sentence that does not fit in a row of its own is divided beforehand. Nothing is random: the rows are the same
    in every epoch, and their order and masks are not.

    Args:
        sentences: int [sentences + 1], where each sentence begins in the tokens.
        documents: int [documents + 1], where each document begins in the sentences.
        sequence_length: int, the length of a row, [CLS] and every [SEP] included; at least 3.
        documents_in_row: int, see `most_documents`.

    Returns:
        int32 [rows, 2 * documents_in_row + 1]: start and end of each span, 0 and 0 where unused, and a label of 0.
    """
    if sequence_length < 3:
        raise ValueError(f"sequence_length: needs at least 3, [CLS], a token and [SEP]. Received: {sequence_length}.")
    bounds, documents = divide_long_sentences(sentences, documents, sequence_length - 2)
    document_count = len(documents) - 1
    document_of = np.repeat(np.arange(document_count), np.diff(documents))
    # Places in a text that has a [SEP] after each document: what a row from one sentence to another takes.
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


def _chain(following):
    """0, what follows it, what follows that, … to the end."""
    chain, place = [], 0
    while place < len(following):
        chain.append(place)
        place = following[place]
    return chain
