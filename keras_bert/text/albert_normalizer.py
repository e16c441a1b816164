"""ALBERT's normalization in the graph: one space between words, NFKD, no accents, lower case.

Source: `preprocess_text` in tokenization.py of google-research/albert. It handles each character on its own, except for
white space and the final sigma, so that a table look-up does the rest (see `character_table.py`).
"""

from typing import NamedTuple

import tensorflow as tf

from keras_bert.text import standalone_tokenizer as table
from keras_bert.text.character_table import load_albert_table
from keras_bert.text.characters import CharacterLookUp, Characters, character, drop, kept, kind, lower_sigma, row_ids

_QUOTES = tuple(map(ord, "`'"))


class NormalizedTexts(NamedTuple):
    """Normalized texts, and where their characters come from.

    Attributes:
        texts: string `[batch]`.
        characters: int32 `[characters]`, the code points of all normalized texts.
        splits: int64 `[batch + 1]`: the characters of text `i` are `splits[i]` to `splits[i + 1]`.
        starts, ends: int32 `[characters]`, the offsets of each in its original text, in code points.
    """

    texts: tf.Tensor
    characters: tf.Tensor
    splits: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


class AlbertNormalizer(tf.Module):
    """Equal to `preprocess_text` on any bytes; bytes that are not UTF-8 are skipped.

    Args:
        lower_case: whether texts are lower-cased.
        quotes: whether `` and '' become ", as in transformers' tokenizer; Google's does not do it.
    """

    def __init__(self, lower_case: bool = True, quotes: bool = True) -> None:
        super().__init__()
        self._lower_case, self._quotes = lower_case, quotes
        self._look_up = CharacterLookUp(load_albert_table(lower_case))

    def __call__(self, texts: tf.Tensor) -> NormalizedTexts:
        """Normalizes texts, string `[batch]`."""
        decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
        code_points, splits = decoded.values, decoded.row_splits
        size = tf.size(code_points)
        rows = row_ids(splits, size)
        source_ends = tf.range(1, size + 1)
        is_kept = self._single_spaces(code_points, rows)
        if self._quotes:
            code_points, is_second = _double_quotes(code_points, rows)
            is_kept &= ~is_second
            source_ends += tf.concat([tf.cast(is_second[1:], tf.int32), tf.zeros([tf.minimum(size, 1)], tf.int32)], 0)
        characters = kept(Characters(self._look_up(code_points), tf.range(size), splits), is_kept)
        expands = tf.reduce_any(kind(characters.entries) == table.EXPANDS)
        characters = tf.cond(expands, lambda: self._look_up.expand(characters), lambda: characters)
        characters = drop(characters, table.DELETED)
        if self._lower_case:
            is_sigma = kind(characters.entries) == table.SIGMA
            entries = tf.cond(
                tf.reduce_any(is_sigma), lambda: lower_sigma(characters, is_sigma), lambda: characters.entries
            )
            characters = characters._replace(entries=entries)
        letters = character(characters.entries)
        by_text = tf.RaggedTensor.from_row_splits(letters, characters.splits, validate=False)
        normalized = tf.ensure_shape(tf.strings.unicode_encode(by_text, "UTF-8"), [None])
        row_starts = tf.gather(tf.cast(splits, tf.int32), tf.gather(rows, characters.sources))
        starts, ends = characters.sources, tf.gather(source_ends, characters.sources)
        return NormalizedTexts(normalized, letters, characters.splits, starts - row_starts, ends - row_starts)

    def _single_spaces(self, code_points: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        """True for all but white space before the first word, after the last one, or before other white space."""
        is_space = kind(self._look_up(code_points)) == table.SPACE
        words = tf.cast(tf.where(~is_space)[:, 0], tf.int32)
        word_rows = tf.concat([[-1], tf.gather(rows, words), [-1]], axis=0)
        # Of the characters that are not space: how many come before each character.
        before = tf.cumsum(tf.cast(~is_space, tf.int32), exclusive=True)
        after_word = tf.equal(tf.gather(word_rows, before), rows)
        follows = ~is_space[1:] & tf.equal(rows[1:], rows[:-1])
        next_is_word = tf.concat([follows, tf.zeros([tf.minimum(tf.size(rows), 1)], tf.bool)], axis=0)
        return ~is_space | (after_word & next_is_word)


def _double_quotes(code_points: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """`(code points with " at the first of each `` and '', which are the second of a pair)`."""
    nothing = tf.zeros_like(code_points, tf.bool)
    # The character before and after each, as far as it is of the same text.
    same_row = tf.equal(rows[1:], rows[:-1])
    repeats = same_row & tf.equal(code_points[1:], code_points[:-1])
    is_quote = tf.reduce_any([tf.equal(code_points, quote) for quote in _QUOTES], axis=0)

    def pairs() -> tuple[tf.Tensor, tf.Tensor]:
        edge = nothing[:1]
        continues = tf.concat([edge, repeats], axis=0) & is_quote
        # Within a run of equal quotes, the second, fourth and so on end a pair.
        first = tf.cast(tf.where(~continues)[:, 0], tf.int32)
        run = tf.cumsum(tf.cast(~continues, tf.int32)) - 1
        place = tf.range(tf.size(code_points)) - tf.gather(first, run)
        is_second = continues & tf.equal(place % 2, 1)
        is_first = tf.concat([is_second[1:], edge], axis=0)
        return tf.where(is_first, ord('"'), code_points), is_second

    return tf.cond(tf.reduce_any(repeats & is_quote[1:]), pairs, lambda: (code_points, nothing))


def character_bytes(characters: tf.Tensor) -> tf.Tensor:
    """How many bytes of UTF-8 each code point takes: int32."""
    return 1 + tf.add_n([tf.cast(characters > most, tf.int32) for most in (0x7F, 0x7FF, 0xFFFF)])
