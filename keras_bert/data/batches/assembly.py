"""Assembles rows of token ids from spans: [CLS], then each span with its [SEP], then padding."""

from typing import NamedTuple

import tensorflow as tf

from keras_bert.models.bert.config import BOTH, NEXT
from keras_bert.text.vocabulary import Vocabulary

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
        vocabulary: for the ids of the special tokens.
    """
    starts, ends = spans[:, 0::2], spans[:, 1::2]
    lengths = tf.cast(ends - starts, tf.int32)
    after = 1 + tf.cumsum(lengths + tf.cast(lengths > 0, tf.int32), axis=1)  # The position after a span's [SEP].
    shifts = ends - tf.cast(after, tf.int64) + 1  # From a position to the index of its token.
    places = tf.range(sequence_length)[None, :]
    number, span_after, shift = _spans_at(places, after, shifts)
    is_filled = places < after[:, -1:]
    is_text = (places > 0) & (places < span_after - 1)
    sources = tf.where(is_text, tf.cast(places, tf.int64) + shift, 0)
    special = tf.where(places == 0, vocabulary.cls_id, tf.where(is_filled, vocabulary.sep_id, vocabulary.pad_id))
    word_ids = tf.where(is_text, tf.cast(tf.gather(tokens, sources), tf.int32), special)
    return PaddedRows(word_ids, after[:, -1], tf.where(is_filled, number, 0), sources)


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
    """The predictions of a batch of packed rows.

    Every token but the first is predicted, [SEP] included, with one exception: the first token after a [SEP]. It begins
    another document, and nothing in the row says which one follows.

    Args:
        word_ids: int32 [batch, seq]; rows hold [CLS], tokens, [SEP], tokens, [SEP], … and padding.
        lengths: int32 [batch], tokens of each row that are not padding.
        vocabulary: for the id of [SEP].

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
    """As `next_tokens`, and the same from right to left.

    Every token but the last is predicted from those after it, [CLS] included, with one exception: the token before a
    [SEP] that another document follows.

    Returns: as `next_tokens`; and `previous_token_ids` int32 [batch, seq], the token before each position, 0 before the
        first; `previous_token_weights` float32 [batch, seq], 1 where it is predicted.
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
