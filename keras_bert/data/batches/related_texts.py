"""Pairs of texts with many words in common, made of a sentence and another of its document; in the graph, stateless.

A related pair is a sentence, possibly with some words swapped, and a disturbed copy of it. An unrelated pair is as
close in topic and length: a sentence and a disturbed version of itself with words swapped, of the other sentence, or of
half of each. So neither length nor topic gives the label away. Random bits come from `masking`, so a pair is a function
of (seed, epoch, example).
"""

from typing import NamedTuple

import tensorflow as tf

from keras_bert.core.errors import UserError
from keras_bert.data.batches.corruption.restored import places_of
from keras_bert.data.batches.corruption.texts import Texts, drawn_below, drawn_places, either, gathered, stream_bits
from keras_bert.data.batches.mask_units import word_heads
from keras_bert.data.batches.masking import candidates, example_keys, high_bits, random_bits
from keras_bert.data.batches.packing import PaddedRows
from keras_bert.models.term import RUNNING_TEXT
from keras_bert.text.characters import continues_word
from keras_bert.text.vocabulary import Vocabulary

# Streams of an example's random sequence; see `corruption.texts`. The two swapped sentences have two each.
_SINGLE, _DROPPED, _ORDER, _SWAPS = 64, 65, 66, (67, 69)
# The places of the draws in `_SINGLE`.
_KIND, _SIDES, _HALF, _EXCHANGED, _DROPS, _TURN, _TURNED, _DISORDER, _EXTENSION, _NEW, _NEW_FIRST, _NEW_PLACE = range(
    12
)
_SWAPPED_COUNT = (12, 13)
_UNIT = 2**32
_OTHER_SHARE, _HALF_SHARE = 0.2, 0.2  # Of the unrelated pairs; the other ones differ by swapped words.
_INTACT_SHARE = 0.4  # Of the latter, and of the related pairs: those whose first text has no words swapped.
_BOTH_SWAPPED_SHARE = 0.2  # Of the pairs that differ by swapped words: those with words swapped in both texts.
_LEAST_SWAPPED, _MOST_SWAPPED = 0.3, 0.6  # Of the words that the other sentence lacks.
_MOST_DROPPED = 0.35
_TURNED_SHARE, _DISORDERED_SHARE, _EXTENDED_SHARE = 0.35, 0.4, 0.5
_FEWEST_TURNED = 7
_REACH = 3  # In a disordered text, only words that are closer than this change places.
_MOST_NEW = 5


class RelatedTexts(NamedTuple):
    """Rows of pairs.

    Attributes:
        rows: [CLS] A [SEP] B [SEP] and padding.
        shared: int32 [batch, seq], at each piece of a word 1 if the other text has the word too, 0 if not; -1 at words
            without letters or digits, special tokens and padding.
    """

    rows: PaddedRows
    shared: tf.Tensor


class Words(NamedTuple):
    """The words of rows, in their order; [CLS] and each [SEP] count as words.

    Attributes:
        starts: int32 [batch, seq], the position of each word's first piece.
        sizes: int32 [batch, seq], its pieces.
        fingerprints: int64 [batch, seq], equal for words of the same pieces.
        has_letters: bool [batch, seq], whether its first piece has a letter or digit.
        sentences: the two sentences, as texts of the numbers of their words, half as wide as a row.
    """

    starts: tf.Tensor
    sizes: tf.Tensor
    fingerprints: tf.Tensor
    has_letters: tf.Tensor
    sentences: tuple[Texts, Texts]


class PairMaker:
    """Makes related and unrelated pairs.

    Raises:
        UserError: its rows have no [CLS], like T5's.
    """

    def __init__(self, vocabulary: Vocabulary, seed: int):
        if not vocabulary.row_pattern.start:
            raise UserError(
                "objective.pair: related needs rows that begin with [CLS]. Received: those of "
                f"{vocabulary.title}. Set another vocabulary.kind."
            )
        self._vocabulary = vocabulary
        self._seed = seed
        self._has_letters = [any(map(str.isalnum, vocabulary.appended("", piece))) for piece in vocabulary.tokens]

    def __call__(
        self,
        rows: PaddedRows,
        labels: tf.Tensor,
        example_ids: tf.Tensor,
        epoch: tf.Tensor | int = 0,
        continuation: tf.Tensor | None = None,
    ) -> RelatedTexts:
        """The pairs of a batch; each text is cut after a word to at most half of what a row holds.

        Args:
            rows: [CLS], a sentence, [SEP], another of its document, [SEP], neither longer than half of what a row
                holds; or [CLS] alone, which stays.
            labels: int32 [batch], 0 for related, 1 for unrelated, `RUNNING_TEXT` for rows that stay.
            example_ids: int64 [batch].
            epoch: int, scalar or int64 [batch].
            continuation: bool [batch, seq], as for a `DynamicMasking`.
        """
        if continuation is None:
            continuation = continues_word(self._vocabulary, rows.word_ids)
        runs_on = labels == RUNNING_TEXT
        given = rows._replace(lengths=tf.where(runs_on, 1, rows.lengths))
        words = self._words(given, continuation)
        first, second = made_pairs(words, labels, example_keys(self._seed, epoch, example_ids))
        made = _assembled(given, words, _cut(first, words), _cut(second, words), self._vocabulary.pad_id)
        stays = runs_on[:, None]
        return RelatedTexts(
            PaddedRows(
                tf.where(stays, rows.word_ids, made.rows.word_ids),
                tf.where(runs_on, rows.lengths, made.rows.lengths),
                tf.where(stays, rows.span_numbers, made.rows.span_numbers),
                tf.where(stays, rows.sources, made.rows.sources),
            ),
            tf.where(stays, -1, made.shared),
        )

    def _words(self, rows: PaddedRows, continuation: tf.Tensor) -> Words:
        seq = rows.word_ids.shape[1]
        places, lengths = tf.range(seq)[None, :], rows.lengths[:, None]
        candidate = candidates(rows.word_ids, rows.lengths, self._vocabulary)
        begins = word_heads(candidate, continuation) | (places < lengths) & ~candidate
        starts = places_of(begins, seq)
        ends = tf.minimum(tf.pad(starts[:, 1:], [(0, 0), (0, 1)], constant_values=seq), lengths)
        of_place = tf.maximum(tf.cumsum(tf.cast(begins, tf.int32), axis=1) - 1, 0)
        into_word = places - tf.gather(starts, of_place, batch_dims=1)
        first_pieces = tf.gather(rows.word_ids, tf.minimum(starts, seq - 1), batch_dims=1)
        count, other_count = (
            tf.reduce_sum(tf.cast(begins & candidate & (rows.span_numbers == number), tf.int32), axis=1)
            for number in (0, 1)
        )
        # The words of the first sentence follow [CLS], those of the second the [SEP] after the first.
        numbers = tf.broadcast_to(1 + tf.range(_most_tokens(seq))[None, :], [tf.shape(count)[0], _most_tokens(seq)])
        return Words(
            starts,
            tf.maximum(ends - starts, 0),
            _sums(rows.word_ids, into_word, starts, ends),
            tf.gather(tf.constant(self._has_letters), first_pieces),
            (Texts(numbers, count), Texts(numbers + count[:, None] + 1, other_count)),
        )


def _most_tokens(sequence_length: int) -> int:
    """The most tokens of each text in a row."""
    return (sequence_length - 3) // 2


class _Draws:
    """The random numbers that each example needs only one of."""

    def __init__(self, keys: tf.Tensor):
        self._bits = stream_bits(keys, _SINGLE, 14)

    def share(self, number: int, most: float = 1.0) -> tf.Tensor:
        """Uniform below `most`, int64 [batch, 1] in units of 2**-32."""
        return _times(high_bits(self._bits[:, number : number + 1]), most)

    def below(self, number: int, limits: tf.Tensor) -> tf.Tensor:
        """Uniform from 0 to `limits` - 1, int32 [batch, 1]; 0 for a limit below 1."""
        return drawn_below(self._bits[:, number : number + 1], tf.maximum(limits, 0)[:, None])

    def is_in(self, number: int, share: float) -> tf.Tensor:
        """True with a probability of `share`, and then also for every larger share: bool [batch, 1]."""
        return self.share(number) < round(share * _UNIT)


def made_pairs(words: Words, labels: tf.Tensor, keys: tf.Tensor) -> tuple[Texts, Texts]:
    """Both texts of each pair, as the numbers of their words, before they are cut.

    Args:
        words: the words of the sentences that the pairs are made of.
        labels: int32 [batch], 0 for related, 1 for unrelated.
        keys: uint64 [batch], see `example_keys`.
    """
    draws, (sentence, other) = _Draws(keys), words.sentences
    swapped, can_swap = _swapped(words, keys, 0, draws)
    swapped_too, _ = _swapped(words, keys, 1, draws)
    is_related = labels[:, None] == 0
    is_other = ~is_related & draws.is_in(_KIND, _OTHER_SHARE)
    is_half = ~is_related & ~is_other & (draws.is_in(_KIND, _OTHER_SHARE + _HALF_SHARE) | ~can_swap)
    is_intact, are_both = draws.is_in(_SIDES, _INTACT_SHARE), ~draws.is_in(_SIDES, 1 - _BOTH_SWAPPED_SHARE)
    first = either(is_other | is_half | is_intact, sentence, swapped)
    second = either(is_intact, swapped, either(are_both, swapped_too, sentence))
    second = either(is_half, _halves(sentence, other, draws.is_in(_HALF, 0.5)), second)
    second = either(is_related, first, either(is_other, other, second))
    second = _disturbed(second, other, keys, draws)
    is_exchanged = draws.is_in(_EXCHANGED, 0.5)
    return either(is_exchanged, second, first), either(is_exchanged, first, second)


def _swapped(words: Words, keys: tf.Tensor, number: int, draws: _Draws) -> tuple[Texts, tf.Tensor]:
    """Replace 30% to 60% of the words that only this sentence has with words that only the other has.

    Returns: (the sentence; bool [batch, 1], whether it has at least three such words and the other at least two; if
        not, none change).
    """
    sentence, other = words.sentences
    is_equal = _equal_words(words, sentence, other)
    is_own, is_others = (
        text.is_token & ~tf.reduce_any(is_equal, axis) & tf.gather(words.has_letters, text.word_ids, batch_dims=1)
        for text, axis in ((sentence, 2), (other, 1))
    )
    owned, offered = (tf.reduce_sum(tf.cast(own, tf.int32), axis=1) for own in (is_own, is_others))
    pool = gathered(other, places_of(is_others, other.width), offered)
    can_swap = (owned >= 3) & (offered >= 2)
    share = round(_LEAST_SWAPPED * _UNIT) + draws.share(_SWAPPED_COUNT[number], _MOST_SWAPPED - _LEAST_SWAPPED)
    count = tf.cast(tf.bitwise.right_shift(tf.cast(owned, tf.int64) * share[:, 0] + _UNIT // 2, 32), tf.int32)
    count = tf.where(can_swap, tf.maximum(count, 2), 0)
    stream = _SWAPS[number]
    is_swapped = drawn_places(keys, stream, is_own, count, sentence.width)
    drawn = drawn_below(stream_bits(keys, stream + 1, sentence.width), offered[:, None])
    new = tf.gather(pool.word_ids, drawn, batch_dims=1)
    return Texts(tf.where(is_swapped, new, sentence.word_ids), sentence.lengths), can_swap[:, None]


def _halves(sentence: Texts, other: Texts, begins_other: tf.Tensor) -> Texts:
    """The first half of one and the second half of the other; `begins_other` bool [batch, 1]: the other comes first."""
    first, second = either(begins_other, other, sentence), either(begins_other, sentence, other)
    kept, skipped = first.lengths // 2, second.lengths // 2
    return _joined(first, kept, second, skipped, second.lengths - skipped)


def _disturbed(texts: Texts, other: Texts, keys: tf.Tensor, draws: _Draws) -> Texts:
    """Drop words, and sometimes rotate the text, shuffle nearby words, or insert a few words of the other sentence."""
    stays = texts.is_token & (high_bits(stream_bits(keys, _DROPPED, texts.width)) >= draws.share(_DROPS, _MOST_DROPPED))
    stays |= texts.is_token & ~tf.reduce_any(stays, axis=1, keepdims=True)
    lengths = tf.reduce_sum(tf.cast(stays, tf.int32), axis=1)
    texts = gathered(texts, places_of(stays, texts.width), lengths)

    turns = draws.is_in(_TURN, _TURNED_SHARE) & (lengths >= _FEWEST_TURNED)[:, None]
    first = tf.where(turns, 2 + draws.below(_TURNED, lengths - 4), 0)
    texts = gathered(texts, tf.math.floormod(texts.places + first, tf.maximum(lengths, 1)[:, None]), lengths)

    drift = _times(high_bits(stream_bits(keys, _ORDER, texts.width)), _REACH)
    scores = tf.cast(texts.places, tf.int64) * _UNIT + tf.where(draws.is_in(_DISORDER, _DISORDERED_SHARE), drift, 0)
    order = tf.argsort(tf.where(texts.is_token, scores, tf.int64.max), axis=1, stable=True)
    texts = gathered(texts, order, lengths)

    new = 1 + draws.below(_NEW, tf.minimum(other.lengths, _MOST_NEW))
    new = tf.where(draws.is_in(_EXTENSION, _EXTENDED_SHARE) & (other.lengths > 0)[:, None], new, 0)[:, 0]
    first = draws.below(_NEW_FIRST, other.lengths - new + 1)[:, 0]
    place = draws.below(_NEW_PLACE, lengths + 1)[:, 0]
    extended = _joined(texts, place, other, first, new)
    return _joined(extended, place + new, texts, place, lengths - place)


def _joined(first: Texts, kept: tf.Tensor, second: Texts, skipped: tf.Tensor, added: tf.Tensor) -> Texts:
    """The `kept` first words of one text and `added` words of another from number `skipped` on, int32 [batch] each.

    The result is as wide as the first text; words that do not fit are left out.
    """
    both = Texts(tf.concat([first.word_ids, second.word_ids], axis=1), first.lengths)
    of_second = first.width + skipped[:, None] + first.places - kept[:, None]
    sources = tf.where(first.places < kept[:, None], first.places, of_second)
    return gathered(both, sources, tf.minimum(kept + added, first.width))


def _times(numbers: tf.Tensor, factor: float) -> tf.Tensor:
    """Multiply int64 below 2**32 by a factor, which is rounded to a multiple of 2**-16."""
    return tf.bitwise.right_shift(numbers * round(factor * 2**16), tf.constant(16, tf.int64))


def _sums(word_ids: tf.Tensor, into_word: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
    """A hash of each word's pieces, a sum with random factors: int64 [batch, seq]."""
    factors = tf.bitcast(random_bits(tf.zeros([1], tf.uint64), tf.range(word_ids.shape[1])[None, :])[0], tf.int64)
    values = (tf.cast(word_ids, tf.int64) + 1) * tf.gather(factors, into_word)
    totals = tf.pad(tf.cumsum(values, axis=1), [(0, 0), (1, 0)])  # Wrap around, and so do their differences.
    return tf.gather(totals, tf.maximum(ends, starts), batch_dims=1) - tf.gather(totals, starts, batch_dims=1)


def _cut(texts: Texts, words: Words) -> Texts:
    """Cut the words at the end of texts that do not fit in half of what a row holds."""
    sizes = tf.where(texts.is_token, tf.gather(words.sizes, texts.word_ids, batch_dims=1), 0)
    fits = texts.is_token & (tf.cumsum(sizes, axis=1) <= _most_tokens(words.sizes.shape[1]))
    return Texts(texts.word_ids, tf.reduce_sum(tf.cast(fits, tf.int32), axis=1))


def _assembled(rows: PaddedRows, words: Words, first: Texts, second: Texts, pad_id: int) -> RelatedTexts:
    """[CLS] first [SEP] second [SEP] for each row that is longer than [CLS]; the others are [CLS] alone."""
    seq, separator = rows.word_ids.shape[1], words.sentences[0].lengths[:, None] + 1
    is_row = rows.lengths[:, None] > 1
    word = tf.concat([tf.zeros_like(separator), first.word_ids, separator, second.word_ids, separator], axis=1)
    is_used = tf.concat([tf.ones_like(is_row), first.is_token, is_row, second.is_token, is_row], axis=1)
    ends = tf.cumsum(tf.where(is_used, tf.gather(words.sizes, word, batch_dims=1), 0), axis=1)
    places = tf.range(seq)[None, :]
    # Unused words end where the word before them does, so that no place is theirs.
    slot = tf.searchsorted(ends, tf.broadcast_to(places, tf.shape(rows.word_ids)), side="right")
    slot = tf.minimum(slot, word.shape[1] - 1)
    word = tf.gather(word, slot, batch_dims=1)
    is_filled = places < ends[:, -1:]
    into_word = places - tf.gather(ends, slot, batch_dims=1) + tf.gather(words.sizes, word, batch_dims=1)
    sources = tf.where(is_filled, tf.gather(words.starts, word, batch_dims=1) + into_word, 0)
    return RelatedTexts(
        PaddedRows(
            tf.where(is_filled, tf.gather(rows.word_ids, sources, batch_dims=1), pad_id),
            ends[:, -1],
            tf.cast(is_filled & (slot > first.width + 1), tf.int32),
            tf.gather(rows.sources, sources, batch_dims=1),
        ),
        tf.where(is_filled, tf.gather(_shared(words, first, second), slot, batch_dims=1), -1),
    )


def _shared(words: Words, first: Texts, second: Texts) -> tf.Tensor:
    """`RelatedTexts.shared` of [CLS], the words of the first text, [SEP], those of the second, [SEP]."""
    is_equal = _equal_words(words, first, second)
    shared = []
    for text, axis in ((first, 2), (second, 1)):
        counts = text.is_token & tf.gather(words.has_letters, text.word_ids, batch_dims=1)
        shared.append(tf.where(counts, tf.cast(tf.reduce_any(is_equal, axis), tf.int32), -1))
    special = -tf.ones_like(first.lengths)[:, None]
    return tf.concat([special, shared[0], special, shared[1], special], axis=1)


def _equal_words(words: Words, first: Texts, second: Texts) -> tf.Tensor:
    """Whether words of two texts have the same pieces: bool [batch, words of the first, words of the second]."""
    prints = [tf.gather(words.fingerprints, text.word_ids, batch_dims=1) for text in (first, second)]
    are_words = first.is_token[:, :, None] & second.is_token[:, None, :]
    return are_words & (prints[0][:, :, None] == prints[1][:, None, :])
