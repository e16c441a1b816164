"""Greedy search and sampling: one token is chosen at a time, for good."""

from typing import NamedTuple

import tensorflow as tf

from keras_bert.config.inference import DecodingConfig, SamplingConfig
from keras_bert.inference.decoding.restrictions import NO_TOKEN, forced_token, restricted
from keras_bert.inference.decoding.steps import Cache, Decoded, DecoderTokens, Step, loop, repeated, row_count


class _Rows(NamedTuple):
    """The answers so far.

    Attributes:
        place: int32 scalar, the place of the last token.
        ids: int32 [rows, 1 + max_tokens], padding after the last token.
        lengths: int32 [rows].
        scores: float32 [rows].
        has_ended: bool [rows].
        cache: the cache of all tokens but the last.
    """

    place: tf.Tensor
    ids: tf.Tensor
    lengths: tf.Tensor
    scores: tf.Tensor
    has_ended: tf.Tensor
    cache: Cache


def decode_one_by_one(step: Step, cache: Cache, tokens: DecoderTokens, settings: DecodingConfig) -> Decoded:
    """Decodes the most probable token each time, or a drawn one; see `decode`."""
    cache, most = repeated(cache, settings.n_best), settings.max_tokens
    rows = row_count(cache)

    def goes_on(state: _Rows) -> tf.Tensor:
        return (state.place < most) & ~tf.reduce_all(state.has_ended)

    def extended(state: _Rows) -> _Rows:
        place, ids, lengths, scores, has_ended, cache = state
        logits, cache = step(ids[:, place], place, cache)
        logits = tf.cast(logits, tf.float32)
        allowed = restricted(logits, ids, place, tokens.end, settings)
        chosen = drawn(allowed, place, settings) if settings.temperature else tf.argmax(allowed, 1, tf.int32)
        gained = tf.gather(logits, chosen, batch_dims=1) - tf.reduce_logsumexp(logits, axis=1)
        gained = tf.where((forced_token(place, settings) == NO_TOKEN) & ~has_ended, gained, 0.0)
        chosen = tf.where(has_ended, tokens.padding, chosen)
        return _Rows(
            place + 1,
            tf.where(tf.range(1 + most) == place + 1, chosen[:, tf.newaxis], ids),
            lengths + tf.cast(~has_ended, tf.int32),
            scores + gained,
            has_ended | (chosen == tokens.end),
            cache,
        )

    ids = tf.one_hot(tf.zeros([rows], tf.int32), 1 + most, tokens.start, tokens.padding, dtype=tf.int32)
    begun = _Rows(tf.constant(0), ids, tf.zeros([rows], tf.int32), tf.zeros([rows]), tf.zeros([rows], tf.bool), cache)
    ended = loop(goes_on, extended, begun)
    return Decoded(ended.ids[:, 1:], ended.lengths, ended.scores)


def drawn(logits: tf.Tensor, place: tf.Tensor, sampling: SamplingConfig) -> tf.Tensor:
    """Draws a token for each row by `sampling`: int32 [rows].

    Args:
        logits: float32 [rows, vocab], -inf where a token cannot be drawn.
        place: int32 scalar. A draw is a function of the seed, the place and the row's number.
    """
    scores, order = logits / sampling.temperature, None
    if sampling.top_k:
        least = tf.math.top_k(scores, min(sampling.top_k, logits.shape[1])).values[:, -1:]
        scores = tf.where(scores < least, -float("inf"), scores)  # Keeps all equal ones, as transformers does.
    if sampling.top_p is not None:
        scores, order = tf.math.top_k(scores, logits.shape[1])
    shares = tf.nn.softmax(tf.cast(scores, tf.float64))
    if sampling.top_p is not None:
        shares = tf.where(tf.cumsum(shares, axis=1, exclusive=True) < sampling.top_p, shares, 0.0)
    reached = tf.cumsum(shares, axis=1)
    seed = tf.stack([tf.constant(sampling.seed, tf.int64), tf.cast(place, tf.int64)])
    uniform = tf.random.stateless_uniform([tf.shape(logits)[0]], seed, dtype=tf.float64, alg="philox")
    # A token with share 0 is never found, since it does not raise the cumulative share.
    found = tf.searchsorted(reached, (uniform * reached[:, -1])[:, tf.newaxis], side="right")[:, 0]
    return found if order is None else tf.gather(order, found, batch_dims=1)
