"""Rows of sentences: planned as spans of a shard's tokens, and assembled from spans.

A packed row (RoBERTa, Liu et al. 2019, section 4.2) is [CLS], then one span for each document in it, each with its
[SEP]. With whole sentences and one document per row this is DOC-SENTENCES; with more it is FULL-SENTENCES, where that
[SEP] is the paper's extra separator between documents. Filled rows may end within a sentence, which leaves hardly any
padding.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert.models.bert.config import BOTH, NEXT
from keras_bert.text.vocabulary import Vocabulary


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
        int32 [rows, 2 * documents_in_row + 1]: start and end of each span, both 0 if unused, and a label: 1 if the row
        continues the document of the row before, 0 if it begins with a document's start.
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
    goes_on = ~np.isin(starts, edges)
    return np.column_stack([spans.reshape(len(starts), 2 * documents_in_row), goes_on]).astype(np.int32)


def _rows_of_sentences(
    bounds: np.ndarray, documents: np.ndarray, sequence_length: int, documents_in_row: int
) -> np.ndarray:
    """The first sentence of each row, int64 [rows]; for `bounds` and `documents` see `divide_long_sentences`."""
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


_FEW_SPANS = 4  # Up to this many, comparing with each span takes less than half the time of a search.


class PaddedRows(NamedTuple):
    """Rows of a batch.

    Attributes:
        word_ids: int32 [batch, seq].
        lengths: int32 [batch], tokens that are not padding.
        span_numbers: int32 [batch, seq], the span that each position belongs to, with its [SEP]; 0 at [CLS] and
            padding.
        sources: int64 [batch, seq], the index of the token at each position; any valid index at special tokens.
    """

    word_ids: tf.Tensor
    lengths: tf.Tensor
    span_numbers: tf.Tensor
    sources: tf.Tensor


def assemble_rows(tokens: tf.Tensor, spans: tf.Tensor, sequence_length: int, vocabulary: Vocabulary) -> PaddedRows:
    """Rows of `sequence_length` positions.

    Args:
        tokens: integer ids [tokens].
        spans: int64 [batch, 2 * n], n static: start and end of each span in the tokens; empty spans come last.
        sequence_length: length of the rows; the spans of every row must fit.
    """
    starts, ends = spans[:, 0::2], spans[:, 1::2]
    lengths = tf.cast(ends - starts, tf.int32)
    pattern = vocabulary.row_pattern  # [CLS] is before the spans, after them (XLNet) or nowhere (T5).
    first, last = len(pattern.start), len(pattern.end) - 1
    after = first + tf.cumsum(lengths + tf.cast(lengths > 0, tf.int32), axis=1)  # The position after a span's [SEP].
    shifts = ends - tf.cast(after, tf.int64) + 1  # From a position to the index of its token.
    places = tf.range(sequence_length)[None, :]
    number, span_after, shift = _spans_at(places, after, shifts)
    is_filled = places < after[:, -1:]
    is_text = (places >= first) & (places < span_after - 1)
    sources = tf.where(is_text, tf.cast(places, tf.int64) + shift, 0)
    is_cls = (places < first) | (places >= after[:, -1:]) & (places < after[:, -1:] + last)
    special = tf.where(is_cls, vocabulary.cls_id, tf.where(is_filled, vocabulary.sep_id, vocabulary.pad_id))
    word_ids = tf.where(is_text, tf.cast(tf.gather(tokens, sources), tf.int32), special)
    return PaddedRows(word_ids, after[:, -1] + last, tf.where(is_filled, number, 0), sources)


def with_segment_of_cls(segment_ids: tf.Tensor, lengths: tf.Tensor, vocabulary: Vocabulary) -> tf.Tensor:
    """Set the segment of each row's last token in segments [batch, seq], if the row pattern gives it one of its own."""
    last_segment = vocabulary.row_pattern.last_segment
    if last_segment is None:
        return segment_ids
    return tf.where(tf.range(segment_ids.shape[1])[None, :] == lengths[:, None] - 1, last_segment, segment_ids)


def _spans_at(places: tf.Tensor, after: tf.Tensor, shifts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """For each position [1, seq], the number of its span and that span's entries in `after` and `shifts` [batch, n]."""
    if after.shape[1] > _FEW_SPANS:
        places = tf.broadcast_to(places, [tf.shape(after)[0], places.shape[1]])
        number = tf.minimum(tf.searchsorted(after, places, side="right"), after.shape[1] - 1)
        return number, tf.gather(after, number, batch_dims=1), tf.gather(shifts, number, batch_dims=1)
    number, span_after, shift = tf.zeros_like(places), after[:, :1], shifts[:, :1]
    for span in range(1, after.shape[1]):
        is_in = places >= after[:, span - 1, None]
        number += tf.cast(is_in, tf.int32)
        span_after = tf.where(is_in, after[:, span, None], span_after)
        shift = tf.where(is_in, shifts[:, span, None], shift)
    return number, span_after, shift


def next_tokens(word_ids: tf.Tensor, lengths: tf.Tensor, vocabulary: Vocabulary) -> dict[str, tf.Tensor]:
    """Next-token predictions for a batch of packed rows.

    Every token but the first is predicted, [SEP] included, with one exception: the first token after a [SEP]. It begins
    another document, and nothing in the row says which one follows.

    Args:
        word_ids: int32 [batch, seq]; rows hold [CLS], tokens, [SEP], tokens, [SEP], … and padding.
        lengths: int32 [batch], tokens of each row that are not padding.

    Returns:
        `input_word_ids` as given; `next_token_ids` int32 [batch, seq], the token after each position, 0 after the last;
        `next_token_weights` float32 [batch, seq], 1 where it is predicted.
    """
    following = tf.concat([word_ids[:, 1:], tf.zeros_like(word_ids[:, :1])], axis=1)
    has_next = tf.range(1, word_ids.shape[1] + 1) < lengths[:, None]
    return {
        "input_word_ids": word_ids,
        "next_token_ids": following,
        "next_token_weights": tf.cast(has_next & (word_ids != vocabulary.sep_id), tf.float32),
    }


def next_and_previous_tokens(word_ids: tf.Tensor, lengths: tf.Tensor, vocabulary: Vocabulary) -> dict[str, tf.Tensor]:
    """Like `next_tokens`, but also from right to left.

    Every token but the last is predicted from those after it, [CLS] included, with one exception: the token before a
    [SEP] that another document follows.

    Returns: what `next_tokens` returns, and `previous_token_ids` int32 [batch, seq], the token before each position, 0
        before the first; `previous_token_weights` float32 [batch, seq], 1 where it is predicted.
    """
    before = tf.concat([tf.zeros_like(word_ids[:, :1]), word_ids[:, :-1]], axis=1)
    places = tf.range(word_ids.shape[1])
    is_between = (word_ids == vocabulary.sep_id) & (places < lengths[:, None] - 1)
    has_previous = (places > 0) & (places < lengths[:, None])
    return {
        **next_tokens(word_ids, lengths, vocabulary),
        "previous_token_ids": before,
        "previous_token_weights": tf.cast(has_previous & ~is_between, tf.float32),
    }


# By `objective.tokens`.
PREDICTIONS = {NEXT: next_tokens, BOTH: next_and_previous_tokens}
