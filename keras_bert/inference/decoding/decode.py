"""Decodes answers by beam search or, with a single beam, greedily."""

from typing import NamedTuple

import tensorflow as tf

from keras_bert.config.inference import DecodingConfig
from keras_bert.inference.decoding.beams import search_with_beams
from keras_bert.inference.decoding.restrictions import NO_TOKEN, forced_token, restricted
from keras_bert.inference.decoding.steps import Cache, Decoded, DecoderTokens, Step, apart, loop, row_count


def decode(step: Step, cache: Cache, tokens: DecoderTokens, settings: DecodingConfig) -> Decoded:
    """Decodes a model's answers for each row of a cache. Runs eagerly, in a `tf.function` and in a SavedModel.

    Stops when every row's answer has ended, and matches transformers' `generate` for the same logits.

    Args:
        step: the model; see `steps.Step`.
        cache: the cache before the first token, [rows, …], for the places 0 to `max_tokens` - 1. For beams it is
            repeated along the first axis, and reordered after each step except for tensors that the step returns
            unchanged, such as the encoder's outputs.
    """
    find = _most_probable if settings.beams == 1 else search_with_beams
    return find(apart(step), cache, tokens, settings)


class _Rows(NamedTuple):
    """The answers so far.

    Attributes:
        place: int32 scalar, the place of the last token.
        ids: int32 [rows, 1 + max_tokens], padding after the last token.
        scores: float32 [rows].
        has_ended: bool [rows].
        cache: the cache of all tokens but the last.
    """

    place: tf.Tensor
    ids: tf.Tensor
    scores: tf.Tensor
    has_ended: tf.Tensor
    cache: Cache


def _most_probable(step: Step, cache: Cache, tokens: DecoderTokens, settings: DecodingConfig) -> Decoded:
    """Decodes the most probable token each time, never revised; see `decode`."""
    rows, most = row_count(cache), settings.max_tokens

    def goes_on(state: _Rows) -> tf.Tensor:
        return (state.place < most) & ~tf.reduce_all(state.has_ended)

    def extended(state: _Rows) -> _Rows:
        place, ids, scores, has_ended, cache = state
        logits, cache = step(ids[:, place], place, cache)
        logits = tf.cast(logits, tf.float32)
        chosen = tf.argmax(restricted(logits, ids, place, tokens.end, settings), 1, tf.int32)
        gained = tf.gather(logits, chosen, batch_dims=1) - tf.reduce_logsumexp(logits, axis=1)
        gained = tf.where((forced_token(place, settings) == NO_TOKEN) & ~has_ended, gained, 0.0)
        chosen = tf.where(has_ended, tokens.padding, chosen)
        return _Rows(
            place + 1,
            tf.where(tf.range(1 + most) == place + 1, chosen[:, tf.newaxis], ids),
            scores + gained,
            has_ended | (chosen == tokens.end),
            cache,
        )

    ids = tf.one_hot(tf.zeros([rows], tf.int32), 1 + most, tokens.start, tokens.padding, dtype=tf.int32)
    begun = _Rows(tf.constant(0), ids, tf.zeros([rows]), tf.zeros([rows], tf.bool), cache)
    ended = loop(goes_on, extended, begun)
    return Decoded(ended.ids[:, 1:], ended.scores)
