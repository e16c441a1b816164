"""The corruption of T5, whose decoder predicts what sentinels stand for (Raffel et al. 2020, section 3.1.4)."""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from keras_bert.data.batches.corruption.restored import places_of
from keras_bert.data.batches.corruption.texts import Texts, counts_by_length, drawn_places, gathered

_NOISE, _KEPT = 32, 33


class NoiseCounts(NamedTuple):
    """How many tokens of a text are noise, and in how many spans."""

    tokens: int
    spans: int


def noise_counts(length: int, share: float, span_length: float, sentinels: int) -> NoiseCounts:
    """The noise of a text of some length.

    At least one token is noise and at least one is not, as by `random_spans_noise_mask` in T5's code. Here, there are
    also no more spans than tokens that stay, and fewer spans than sentinels. The only token of a text stays.
    """
    tokens = min(max(round(length * share), 1), length - 1)
    spans = max(1, round(tokens / span_length))
    return NoiseCounts(tokens, min(spans, tokens, length - tokens, sentinels - 1))


def targets_length(length: int, share: float, span_length: float, sentinels: int) -> int:
    """The most target tokens of a text of at most `length` tokens: its noise, and one more sentinel than spans."""
    counts = (noise_counts(shorter, share, span_length, sentinels) for shorter in range(1, length + 1))
    return max(tokens + spans + 1 for tokens, spans in counts)


def replace_spans(
    texts: Texts, keys: tf.Tensor, share: float, span_length: float, sentinel_ids: Sequence[int]
) -> tuple[Texts, Texts]:
    """Replaces spans of noise, a share of the tokens, with one sentinel each.

    The noise and the tokens that stay are each divided at random into the same number of spans, which alternate; each
    text ends with noise. As in the paper's figure, a final sentinel ends the targets; its code omits it.

    Args:
        keys: uint64 [batch], the keys of the examples.
        share: the share of the tokens that is noise.
        span_length: the mean length of a span of noise.
        sentinel_ids: the ids of the sentinels, in the order of their spans.

    Returns:
        What the encoder reads: the texts with a sentinel for each span, as wide as they were. What the decoder
        predicts: each sentinel followed by its span, then a final sentinel.
    """

    def counts(length: int) -> NoiseCounts:
        return noise_counts(length, share, span_length, len(sentinel_ids))

    ids = tf.constant(list(sentinel_ids), tf.int32)
    noise, most_noise = counts_by_length(texts, lambda length: counts(length).tokens)
    spans, most_spans = counts_by_length(texts, lambda length: counts(length).spans)
    kept_ends = _segment_ends(keys, _KEPT, texts.lengths - noise, spans, texts.width, most_spans)
    noise_ends = _segment_ends(keys, _NOISE, noise, spans, most_noise, most_spans)
    ends = kept_ends + noise_ends  # In the text.
    starts = kept_ends + tf.pad(noise_ends[:, :-1], [(0, 0), (1, 0)])
    places = tf.broadcast_to(texts.places, tf.shape(texts.word_ids))
    number = tf.searchsorted(starts, places, side="right")  # How many spans of noise have begun at a place.
    is_noise = texts.is_token & (number > tf.searchsorted(ends, places, side="right"))
    stays = texts.is_token & ~is_noise

    # For the encoder, a sentinel replaces the first token of a span of noise. In the targets, the same sentinel
    # replaces the first of the kept tokens before that span.
    begins_noise, begins_kept = is_noise & ~_shifted(is_noise), stays & ~_shifted(stays) & (number < spans[:, None])
    read = Texts(tf.where(begins_noise, tf.gather(ids, tf.maximum(number - 1, 0)), texts.word_ids), texts.lengths)
    told = Texts(tf.where(begins_kept, tf.gather(ids, number), texts.word_ids), texts.lengths)
    width = targets_length(texts.width, share, span_length, len(sentinel_ids))
    targets = gathered(told, places_of(is_noise | begins_kept, width), noise + spans)
    is_last = (tf.range(width)[None, :] == targets.lengths[:, None]) & (texts.lengths > 0)[:, None]
    with_last = tf.where(is_last, tf.gather(ids, spans)[:, None], targets.word_ids)
    corrupted = gathered(read, places_of(stays | begins_noise, texts.width), texts.lengths - noise + spans)
    return corrupted, Texts(with_last, targets.lengths + tf.cast(texts.lengths > 0, tf.int32))


def _segment_ends(
    keys: tf.Tensor, stream: int, items: tf.Tensor, segments: tf.Tensor, most_items: int, most_segments: int
) -> tf.Tensor:
    """Divides `items` into non-empty `segments`, int32 [batch] both, with all divisions equally likely.

    Returns: the end of each segment, int32 [batch, most_segments], padded with `items`.
    """
    places = tf.range(most_items)[None, :]
    inner = (places > 0) & (places < items[:, None])
    chosen = drawn_places(keys, stream, inner, tf.maximum(segments - 1, 0), most_segments)
    return tf.minimum(places_of(chosen, most_segments), items[:, None])


def _shifted(values: tf.Tensor) -> tf.Tensor:
    """bool [batch, width]: the value at the previous place; false at the first."""
    return tf.pad(values[:, :-1], [(0, 0), (1, 0)])
