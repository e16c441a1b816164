"""Texts without special tokens, which corruptions work on, and the random draws of corruptions."""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from keras_bert.data.batches.mask_units import choose_tokens
from keras_bert.data.batches.masking import below, low_bits, non_negative, random_bits

# Where the streams of corruptions begin in an example's random sequence: after those of masks and of the rows' order.
_FIRST_STREAM, _STREAM = 2**22, 2**16


class Texts(NamedTuple):
    """The texts of a batch.

    Attributes:
        word_ids: int32 [batch, width], `width` static; 0 after the end of a text.
        lengths: int32 [batch], the tokens of each.
    """

    word_ids: tf.Tensor
    lengths: tf.Tensor

    @property
    def width(self) -> int:
        """The most tokens of a text."""
        return self.word_ids.shape[1]

    @property
    def places(self) -> tf.Tensor:
        """int32 [1, width]: 0, 1, …"""
        return tf.range(self.width)[None, :]

    @property
    def is_token(self) -> tf.Tensor:
        """bool [batch, width]: whether a place is within the text."""
        return self.places < self.lengths[:, None]


def unframed(word_ids: tf.Tensor, lengths: tf.Tensor, before: int, after: int) -> Texts:
    """The texts of rows: without the special tokens before and after them, and so narrower.

    Args:
        word_ids: int32 [batch, seq].
        lengths: int32 [batch], tokens of each row that are not padding.
        before, after: how many special tokens there are. A row with no more than these has an empty text.
    """
    width = word_ids.shape[1] - before - after
    texts = Texts(word_ids[:, before : before + width], tf.maximum(lengths - before - after, 0))
    return Texts(tf.where(texts.is_token, texts.word_ids, 0), texts.lengths)


def framed(texts: Texts, start: tuple[int, ...], end: tuple[int, ...], pad_id: int) -> Texts:
    """The texts between special tokens, which add to their width, and with padding. An empty text stays empty."""
    batch, before = tf.shape(texts.word_ids)[0], len(start)
    width = texts.width + before + len(end)
    room = [(0, 0), (before, len(end))]
    word_ids, lengths = tf.pad(texts.word_ids, room), texts.lengths[:, None]
    places = tf.range(width)[None, :]
    for place, token in enumerate(start):
        word_ids = tf.where(places == place, token, word_ids)
    for place, token in enumerate(end):
        word_ids = tf.where(places == lengths + before + place, token, word_ids)
    lengths = tf.where(texts.lengths > 0, texts.lengths + before + len(end), 0)
    word_ids = tf.where(places < lengths[:, None], word_ids, pad_id)
    return Texts(tf.ensure_shape(tf.reshape(word_ids, [batch, width]), [None, width]), lengths)


def gathered(texts: Texts, sources: tf.Tensor, lengths: tf.Tensor) -> Texts:
    """Texts of the tokens at `sources` int32 [batch, n], where the first `lengths` int32 [batch] count."""
    is_token = tf.range(sources.shape[1])[None, :] < lengths[:, None]
    word_ids = tf.gather(texts.word_ids, tf.clip_by_value(sources, 0, texts.width - 1), batch_dims=1)
    return Texts(tf.where(is_token, word_ids, 0), lengths)


def either(condition: tf.Tensor, texts: Texts, others: Texts) -> Texts:
    """Each example's text: of `texts` where `condition` bool [batch, 1] is true, else of `others`."""
    lengths = tf.where(condition[:, 0], texts.lengths, others.lengths)
    return Texts(tf.where(condition, texts.word_ids, others.word_ids), lengths)


def counts_by_length(texts: Texts, count: Callable[[int], int]) -> tuple[tf.Tensor, int]:
    """Return (`count` of each text's length, int32 [batch], but 0 for an empty text; its maximum over all lengths).

    The counts come from a table of all lengths, so they are rounded just as in Python.
    """
    counts = [0, *map(count, range(1, texts.width + 1))]
    return tf.gather(tf.constant(counts, tf.int32), texts.lengths), max(counts)


def stream_bits(keys: tf.Tensor, stream: int, width: int) -> tf.Tensor:
    """The first `width` entries of a stream of its own in each key's random sequence: uint64 [batch, width]."""
    return random_bits(keys, _FIRST_STREAM + stream * _STREAM + tf.range(width)[None, :])


def drawn_below(bits: tf.Tensor, limits: tf.Tensor | int) -> tf.Tensor:
    """Uniform from 0 to `limits` - 1, int32 [batch, …], from the lower half of `bits` uint64; 0 for a limit of 0."""
    return tf.cast(below(low_bits(bits), limits), tf.int32)


def drawn_places(keys: tf.Tensor, stream: int, candidate: tf.Tensor, counts: tf.Tensor, most: int) -> tf.Tensor:
    """Chooses `counts` int32 [batch], at most `most`, of the candidates bool [batch, n] uniformly: bool [batch, n]."""
    scores = non_negative(stream_bits(keys, stream, candidate.shape[1]))
    return choose_tokens(candidate, counts, scores, max(most, 1))
