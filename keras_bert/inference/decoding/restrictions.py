"""Restricts the next token to what the settings allow or force."""

import tensorflow as tf

from keras_bert.config.inference import DecodingConfig

NO_TOKEN = -1


def restricted(scores: tf.Tensor, ids: tf.Tensor, place: tf.Tensor, end: int, settings: DecodingConfig) -> tf.Tensor:
    """The scores of the tokens that may come next; -inf for the others, 0 for a forced one.

    Args:
        scores: logits or log-probabilities, float32 [rows, vocab].
        ids: int32 [rows, width], the tokens up to `place`, and anything after it.
        place: int32 scalar.
        end: the id of the token that ends an answer.
    """
    if settings.no_repeat_ngram:
        scores = _without_repetition(scores, ids, place, settings.no_repeat_ngram)
    vocab = tf.range(tf.shape(scores)[1])
    if settings.min_tokens:
        scores = tf.where((vocab == end) & (place < settings.min_tokens), -float("inf"), scores)
    if settings.first_token is not None or settings.last_token is not None:
        forced = forced_token(place, settings)
        scores = tf.where(forced == NO_TOKEN, scores, tf.where(vocab == forced, 0.0, -float("inf")))
    return scores


def forced_token(place: tf.Tensor, settings: DecodingConfig) -> tf.Tensor:
    """The only token that may follow `place`, int32 scalar; `NO_TOKEN` if none is forced."""
    forced = tf.constant(NO_TOKEN)
    if settings.first_token is not None:
        forced = tf.where(place == 0, settings.first_token, forced)
    if settings.last_token is not None:
        forced = tf.where(place == settings.max_tokens - 1, settings.last_token, forced)
    return forced


def _without_repetition(scores: tf.Tensor, ids: tf.Tensor, place: tf.Tensor, size: int) -> tf.Tensor:
    """Forbids tokens that would repeat an n-gram of `size` tokens."""
    width = ids.shape[1]
    if width < size:
        return scores
    begins = width - size + 1
    is_before = tf.range(begins) + size - 1 <= place
    matches = tf.broadcast_to(is_before, (tf.shape(ids)[0], begins))
    first = tf.maximum(place - size + 2, 0)  # Below 0, no n-gram is complete yet.
    for offset in range(size - 1):
        matches &= ids[:, offset : offset + begins] == ids[:, first + offset, tf.newaxis]
    follows = ids[:, size - 1 :]
    rows = tf.broadcast_to(tf.range(tf.shape(ids)[0])[:, tf.newaxis], tf.shape(follows))
    bounds = tf.where(matches, -float("inf"), float("inf"))
    return tf.tensor_scatter_nd_min(scores, tf.stack([rows, follows], axis=-1), bounds)
