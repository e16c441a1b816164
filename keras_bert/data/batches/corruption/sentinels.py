"""The corruption of T5, whose decoder predicts what sentinels stand for (Raffel et al. 2020, section 3.1.4)."""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from keras_bert.data.batches.corruption.restored import places_of
from keras_bert.data.batches.corruption.texts import Texts, counts_by_length, drawn_places, gathered

_NOISE, _KEPT = 32, 33


class NoiseCounts(NamedTuple):
    """How much of a text of some length is noise.

    Attributes:
        tokens: the tokens of all spans of noise.
        spans: how many spans there are.
    """

    tokens: int
    spans: int


class Sentinels(NamedTuple):
    """Texts with spans replaced by sentinels.

    Attributes:
        corrupted: what the encoder reads: the text with a sentinel in place of each span; as wide as the texts.
        targets: what the decoder predicts: each sentinel with its span after it, and one sentinel more.
    """

    corrupted: Texts
    targets: Texts


def noise_counts(length: int, share: float, span_length: float, sentinels: int) -> NoiseCounts:
    """As `random_spans_noise_mask` in T5's code: at least one token of a text is noise, and at least one is not.

    Here there are at most as many spans as tokens that stay, and one fewer than there are sentinels. The only token of
    a text stays.
    """
    tokens = min(max(round(length * share), 1), length - 1)
    spans = max(1, round(tokens / span_length))
    return NoiseCounts(tokens, min(spans, tokens, length - tokens, sentinels - 1))


def targets_length(length: int, share: float, span_length: float, sentinels: int) -> int:
    """The most tokens of the targets of a text of at most `length` tokens: its noise, and a sentinel more than it has
    spans."""
    counts = (noise_counts(shorter, share, span_length, sentinels) for shorter in range(1, length + 1))
    return max(tokens + spans + 1 for tokens, spans in counts)


def replace_spans(
    texts: Texts, keys: tf.Tensor, share: float, span_length: float, sentinel_ids: Sequence[int]
) -> Sentinels:
    """Replaces spans of noise, a share of the tokens, each by a sentinel of its own.

    The noise and what stays are each divided at random into as many spans, which alternate: what stays comes first, and
    each text ends with noise. In the paper's figure a last sentinel ends the targets, as here; its code leaves it out.

    Args:
        texts: of any width.
        keys: uint64 [batch], of the examples.
        share: what the noise is of the tokens.
        span_length: the mean length of a span of noise.
        sentinel_ids: the ids of the sentinels, in the order of their spans.
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
    number = tf.searchsorted(starts, places, side="right")  # The spans of noise up to a place.
    is_noise = texts.is_token & (number > tf.searchsorted(ends, places, side="right"))
    stays = texts.is_token & ~is_noise

    # In place of the first token of a span the encoder reads a sentinel. The targets have the same sentinel in place of
    # the token that stays at the beginning of what comes before the span.
    begins_noise, begins_kept = is_noise & ~_shifted(is_noise), stays & ~_shifted(stays) & (number < spans[:, None])
    read = Texts(tf.where(begins_noise, tf.gather(ids, tf.maximum(number - 1, 0)), texts.word_ids), texts.lengths)
    told = Texts(tf.where(begins_kept, tf.gather(ids, number), texts.word_ids), texts.lengths)
    width = targets_length(texts.width, share, span_length, len(sentinel_ids))
    targets = gathered(told, places_of(is_noise | begins_kept, width), noise + spans)
    is_last = (tf.range(width)[None, :] == targets.lengths[:, None]) & (texts.lengths > 0)[:, None]
    with_last = tf.where(is_last, tf.gather(ids, spans)[:, None], targets.word_ids)
    return Sentinels(
        gathered(read, places_of(stays | begins_noise, texts.width), texts.lengths - noise + spans),
        Texts(with_last, targets.lengths + tf.cast(texts.lengths > 0, tf.int32)),
    )


def _segment_ends(
    keys: tf.Tensor, stream: int, items: tf.Tensor, segments: tf.Tensor, most_items: int, most_segments: int
) -> tf.Tensor:
    """Divides `items` into as many `segments`, int32 [batch] both, none of them empty, each division as likely as any
    other: the end of each, int32 [batch, most_segments]; `items` in place of missing ones."""
    places = tf.range(most_items)[None, :]
    inner = (places > 0) & (places < items[:, None])
    chosen = drawn_places(keys, stream, inner, tf.maximum(segments - 1, 0), most_segments)
    return tf.minimum(places_of(chosen, most_segments), items[:, None])


def _shifted(values: tf.Tensor) -> tf.Tensor:
    """bool [batch, width]: the value of the place before; false at the first."""
    return tf.pad(values[:, :-1], [(0, 0), (1, 0)])
