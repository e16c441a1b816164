"""Beam search, with the arithmetic of transformers' `_beam_search`."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert.config.inference import DecodingConfig
from keras_bert.inference.decoding.restrictions import restricted
from keras_bert.inference.decoding.steps import Cache, Decoded, DecoderTokens, Step, loop, row_count

_LEAST = -1e9  # The score of no answer. Adding it to a score excludes the answer; the others keep their order.


class _Beams(NamedTuple):
    """The best partial answers, best first, and the cache of all their tokens but the last.

    Attributes:
        ids: int32 [rows, beams, 1 + max_tokens], padding after the last token.
        scores: float32 [rows, beams], sums of log-probabilities.
        cache: [rows · beams, …].
    """

    ids: tf.Tensor
    scores: tf.Tensor
    cache: Cache


class _Answers(NamedTuple):
    """The best complete answers, best first.

    Attributes:
        ids: as in `_Beams`.
        scores: float32 [rows, beams], divided by the length penalty.
        are_whole: bool [rows, beams]; false where there is no answer yet.
    """

    ids: tf.Tensor
    scores: tf.Tensor
    are_whole: tf.Tensor


class _Search(NamedTuple):
    """A search for the answers of a batch.

    Attributes:
        place: int32 scalar, the place of the beams' last token.
        may_improve: bool [rows], whether a beam may become better than the worst answer.
        goes_on: bool scalar, whether to continue.
    """

    place: tf.Tensor
    beams: _Beams
    answers: _Answers
    may_improve: tf.Tensor
    goes_on: tf.Tensor


class _Candidates(NamedTuple):
    """The best continuations of a row's beams, best first; twice as many as beams, because half of them may end.

    Attributes:
        ids: int32 [rows, candidates, 1 + max_tokens].
        scores: float32 [rows, candidates], sums of log-probabilities.
        parents: int32 [rows, candidates], the beam that each continues.
        end: bool [rows, candidates], whether each is complete.
    """

    ids: tf.Tensor
    scores: tf.Tensor
    parents: tf.Tensor
    end: tf.Tensor


def search_with_beams(step: Step, cache: Cache, tokens: DecoderTokens, settings: DecodingConfig) -> Decoded:
    """Decodes the most probable sequences that beam search finds; see `decode`."""
    penalties = _penalties(settings)

    def turn(search: _Search) -> _Search:
        place, beams, answers, may_improve, _ = search
        candidates, cache = _continued(step, beams, place, tokens, settings)
        beams = _next_beams(candidates, cache, beams.cache)
        answers = _better_answers(answers, candidates, place + 1, may_improve, penalties, settings)
        may_improve &= _may_improve(beams, answers, place + 1, penalties, settings)
        goes_on = tf.reduce_any(may_improve) & ~tf.reduce_all(candidates.end)
        if settings.early_stopping is True:
            goes_on &= ~tf.reduce_all(answers.are_whole)
        return _Search(place + 1, beams, answers, may_improve, goes_on)

    ended = loop(lambda search: search.goes_on, turn, _begun(cache, tokens, settings)).answers
    ids, scores = (tf.reshape(kept[:, : settings.n_best], [-1, *kept.shape[2:]]) for kept in ended[:2])
    return Decoded(ids[:, 1:], scores)


def _penalties(settings: DecodingConfig) -> tf.Tensor:
    """The divisor of an answer's score for each length: float32 [1 + max_tokens]."""
    lengths = np.arange(1 + settings.max_tokens, dtype=np.float64)
    lengths[0] = 1.0  # No answer has length 0.
    return tf.constant(lengths**settings.length_penalty, tf.float32)


def _begun(cache: Cache, tokens: DecoderTokens, settings: DecodingConfig) -> _Search:
    rows, count = row_count(cache), settings.beams
    ids = tf.one_hot(
        tf.zeros([rows, count], tf.int32), 1 + settings.max_tokens, tokens.start, tokens.padding, dtype=tf.int32
    )
    nothing = tf.fill([rows, count], _LEAST)
    # Only the first beam starts, because the others are equal to it.
    scores = tf.where(tf.range(count) == 0, 0.0, nothing)
    answers = _Answers(ids, nothing, tf.zeros([rows, count], tf.bool))
    # Copies of a row's cache are adjacent.
    cache = tf.nest.map_structure(lambda kept: tf.repeat(kept, count, axis=0), cache)
    return _Search(tf.constant(0), _Beams(ids, scores, cache), answers, tf.ones([rows], tf.bool), tf.constant(True))


def _continued(
    step: Step, beams: _Beams, place: tf.Tensor, tokens: DecoderTokens, settings: DecodingConfig
) -> tuple[_Candidates, Cache]:
    """The candidates, and the beams' cache including their last token."""
    count, width = settings.beams, beams.ids.shape[2]
    flat = tf.reshape(beams.ids, [-1, width])
    logits, cache = step(flat[:, place], place, beams.cache)
    gained = restricted(tf.nn.log_softmax(tf.cast(logits, tf.float32)), flat, place, tokens.end, settings)
    vocab = logits.shape[1]
    scores = tf.reshape(gained, [-1, count, vocab]) + beams.scores[:, :, tf.newaxis]
    scores, found = tf.math.top_k(tf.reshape(scores, [-1, count * vocab]), 2 * count)
    parents, last = found // vocab, found % vocab
    ids = tf.gather(beams.ids, parents, batch_dims=1)
    ids = tf.where(tf.range(width) == place + 1, last[:, :, tf.newaxis], ids)
    return _Candidates(ids, scores, parents, (last == tokens.end) | (place + 1 == settings.max_tokens)), cache


def _next_beams(candidates: _Candidates, cache: Cache, before: Cache) -> _Beams:
    """The best candidates that do not end. Unchanged cache tensors are equal for a row's beams, and not reordered."""
    count = candidates.scores.shape[1] // 2
    scores, kept = tf.math.top_k(_without(candidates.scores, candidates.end), count)
    parents = tf.gather(candidates.parents, kept, batch_dims=1)
    rows = tf.reshape(parents + count * tf.range(tf.shape(parents)[0])[:, tf.newaxis], [-1])
    cache = tf.nest.map_structure(lambda now, then: now if now is then else tf.gather(now, rows), cache, before)
    return _Beams(tf.gather(candidates.ids, kept, batch_dims=1), scores, cache)


def _better_answers(
    answers: _Answers,
    candidates: _Candidates,
    length: tf.Tensor,
    may_improve: tf.Tensor,
    penalties: tf.Tensor,
    settings: DecodingConfig,
) -> _Answers:
    """The best of the answers so far and of the candidates in the better half that end."""
    count = settings.beams
    are_whole = candidates.end & (tf.range(2 * count) < count)
    scores = candidates.scores / penalties[length]
    if settings.early_stopping is True:
        scores = _without(scores, tf.reduce_all(answers.are_whole, axis=1, keepdims=True))
    scores = _without(_without(scores, ~may_improve[:, tf.newaxis]), ~are_whole)
    added = _Answers(candidates.ids, scores, are_whole)
    both = _Answers(*(tf.concat(pair, axis=1) for pair in zip(answers, added, strict=True)))
    _, kept = tf.math.top_k(both.scores, count)
    return _Answers(*(tf.gather(one, kept, batch_dims=1) for one in both))


def _may_improve(
    beams: _Beams, answers: _Answers, length: tf.Tensor, penalties: tf.Tensor, settings: DecodingConfig
) -> tf.Tensor:
    """Whether the best beam may still become better than the worst answer: bool [rows].

    Unless `early_stopping` is "never", assumes that the beam ends now, which is a heuristic for a penalty above 0.
    """
    if settings.early_stopping == "never" and settings.length_penalty > 0.0:
        length = settings.max_tokens
    best = beams.scores[:, :1] / penalties[length]
    worst = tf.where(answers.are_whole, tf.reduce_min(answers.scores, axis=1, keepdims=True), _LEAST)
    return tf.reduce_any(best > worst, axis=1)


def _without(scores: tf.Tensor, is_out: tf.Tensor) -> tf.Tensor:
    return scores + tf.cast(is_out, tf.float32) * _LEAST
