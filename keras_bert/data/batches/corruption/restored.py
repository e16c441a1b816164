"""The corruptions of BART, whose decoder restores the whole text (Lewis et al. 2020, section 3.1).

Each takes `Texts` and the keys uint64 [batch] of the examples, and returns texts of the same width.
"""

import math

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_bert.data.batches.corruption.texts import (
    Texts,
    counts_by_length,
    drawn_below,
    drawn_places,
    gathered,
    stream_bits,
)
from keras_bert.data.batches.masking import class_steps, drawn_classes, high_bits, non_negative
from keras_bert.text.vocabulary import Vocabulary

_MASKED, _DELETED, _SPAN_LENGTHS, _SPAN_PLACES, _SENTENCES, _ROTATION = range(6)
_SENTENCE_ENDS, _CLOSING = ".!?…。！？｡", "\"'”’»)]}」』）】》"


def mask_tokens(texts: Texts, keys: tf.Tensor, share: float, mask_id: int) -> Texts:
    """Token masking: replaces a share of the tokens with [MASK]."""
    counts, most = counts_by_length(texts, lambda length: at_least_one(length, share))
    is_masked = drawn_places(keys, _MASKED, texts.is_token, counts, most)
    return Texts(tf.where(is_masked, mask_id, texts.word_ids), texts.lengths)


def delete_tokens(texts: Texts, keys: tf.Tensor, share: float) -> Texts:
    """Token deletion: drops a share of the tokens, but never the only token of a text."""
    counts, most = counts_by_length(texts, lambda length: min(at_least_one(length, share), length - 1))
    stays = texts.is_token & ~drawn_places(keys, _DELETED, texts.is_token, counts, most)
    return gathered(texts, places_of(stays, texts.width), texts.lengths - counts)


def infill_spans(texts: Texts, keys: tf.Tensor, share: float, span_length: float, mask_id: int) -> Texts:
    """Text infilling: replaces spans, with Poisson lengths of mean `span_length`, with one [MASK] each.

    An empty span inserts a [MASK]. Spans are drawn until they contain the share of the tokens, and the last one is cut
    off there. There are at most as many spans as tokens in this share, and no empty spans that do not fit into the
    width. All arrangements of the spans and the tokens that stay are equally likely: spans do not overlap, but may be
    adjacent.
    """
    budget, most = counts_by_length(texts, lambda length: at_least_one(length, share))
    steps = class_steps(poisson(span_length))
    lengths = drawn_classes(high_bits(stream_bits(keys, _SPAN_LENGTHS, most)), steps)
    left = budget[:, None] - tf.cumsum(lengths, axis=1, exclusive=True)
    is_span = (left > 0) & (tf.range(most)[None, :] < budget[:, None])
    lengths = tf.where(is_span, tf.minimum(lengths, left), 0)
    is_empty = is_span & (lengths == 0)
    room = texts.width - texts.lengths + tf.reduce_sum(tf.maximum(lengths - 1, 0), axis=1)
    is_span &= ~is_empty | (tf.cumsum(tf.cast(is_empty, tf.int32), axis=1) <= room[:, None])
    spans = tf.reduce_sum(tf.cast(is_span, tf.int32), axis=1)
    lengths = gathered(Texts(lengths, budget), places_of(is_span, most), spans).word_ids
    ends = tf.cumsum(lengths, axis=1)

    slots = texts.lengths - ends[:, -1] + spans
    is_mask = drawn_places(keys, _SPAN_PLACES, texts.places < slots[:, None], spans, most)
    number = tf.cumsum(tf.cast(is_mask, tf.int32), axis=1)  # The spans up to a slot.
    skipped = tf.gather(tf.pad(ends, [(0, 0), (1, 0)]), number, batch_dims=1)
    kept = gathered(texts, texts.places - number + skipped, slots)
    return Texts(tf.where(is_mask, mask_id, kept.word_ids), slots)


def permute_sentences(texts: Texts, keys: tf.Tensor, ends_sentence: npt.NDArray[np.bool_]) -> Texts:
    """Sentence permutation: puts all sentences in a random order.

    Args:
        texts, keys: see the module's docstring.
        ends_sentence: bool [vocab], see `sentence_ends`. A sentence ends at the last of several such tokens in a row
            (in BART's code, at the first); tokens after the last end are a sentence too.
    """
    is_end = tf.gather(tf.constant(ends_sentence), texts.word_ids % len(ends_sentence)) & texts.is_token
    is_end &= ~tf.pad(is_end[:, 1:], [(0, 0), (0, 1)])
    sentence = tf.cumsum(tf.cast(is_end, tf.int32), axis=1, exclusive=True)
    scores = tf.gather(non_negative(stream_bits(keys, _SENTENCES, texts.width)), sentence, batch_dims=1)
    order = tf.argsort(tf.where(texts.is_token, scores, tf.int64.max), axis=1, stable=True)
    return gathered(texts, order, texts.lengths)


def rotate(texts: Texts, keys: tf.Tensor) -> Texts:
    """Document rotation: starts at a uniformly chosen token and moves the tokens before it to the end."""
    lengths = texts.lengths[:, None]
    first = drawn_below(stream_bits(keys, _ROTATION, 1), lengths)
    return gathered(texts, tf.math.floormod(texts.places + first, tf.maximum(lengths, 1)), texts.lengths)


def sentence_ends(vocabulary: Vocabulary) -> npt.NDArray[np.bool_]:
    """The pieces that end a sentence: full stops and the like, possibly with closing quotes or brackets: bool [vocab].

    Rows do not show where the lines of the text end. BART's sentences end at full stops too; in its code, only there.
    """

    def ends(piece: str) -> bool:
        text = vocabulary.appended("", piece).strip()
        return any(mark in _SENTENCE_ENDS for mark in text) and all(mark in _SENTENCE_ENDS + _CLOSING for mark in text)

    return np.array([ends(piece) for piece in vocabulary.tokens])


def at_least_one(length: int, share: float) -> int:
    """The share of a length, rounded, at least 1."""
    return max(1, round(length * share))


def places_of(chosen: tf.Tensor, width: int) -> tf.Tensor:
    """The places where bool [batch, n] is true, ascending: int32 [batch, width], padded with n."""
    wanted = tf.broadcast_to(tf.range(1, width + 1)[None, :], [tf.shape(chosen)[0], width])
    return tf.searchsorted(tf.cumsum(tf.cast(chosen, tf.int32), axis=1), wanted)


def poisson(mean: float) -> list[float]:
    """The Poisson probabilities of 0, 1, …, until the rest is negligible."""
    most = math.ceil(mean + 10 * math.sqrt(mean) + 10)
    return [math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) for n in range(most + 1)]
