"""Texts to normalized words in the graph: Google's BasicTokenizer, with the offset of each character."""

from typing import NamedTuple

import tensorflow as tf

from keras_bert.text import standalone_tokenizer as table
from keras_bert.text.added_tokens import TokenFinder
from keras_bert.text.characters import (
    CharacterLookUp,
    Characters,
    character,
    drop,
    kind,
    load_character_table,
    lower_sigma,
    order,
    row_ids,
)


class Words(NamedTuple):
    """All words of a batch, concatenated.

    Attributes:
        words: string `[words]`.
        row_splits: int64 `[batch + 1]`: the words of text `i` are `words[row_splits[i] : row_splits[i + 1]]`.
        character_splits: int64 `[words + 1]`: the same for the characters of a word.
        sources: int32 `[characters]`: the index, in the code points of the batch, that a character comes from.
        source_splits: int64 `[batch + 1]`: the same as `row_splits`, for the code points of each text.
        added: int32 `[words]`: the id of a word that is an added token, -1 for the others; None where none can be.
    """

    words: tf.Tensor
    row_splits: tf.Tensor
    character_splits: tf.Tensor
    sources: tf.Tensor
    source_splits: tf.Tensor
    added: tf.Tensor | None = None


class BasicTokenizer(tf.Module):
    """Cleans, lower-cases and strips accents (uncased only), and splits at whitespace, punctuation and ideographs.

    Equal to the BasicTokenizer of Google's tokenization.py on any bytes. Bytes that are not UTF-8 are skipped.
    `strip_accents` and `split_chinese` are as for `WordPieceTokenizer`.
    """

    def __init__(self, lower_case: bool = True, strip_accents: bool | None = None, split_chinese: bool = True) -> None:
        super().__init__()
        self.lower_case = lower_case
        self._changes_characters = lower_case or bool(strip_accents)
        self._look_up = CharacterLookUp(load_character_table(lower_case, strip_accents, split_chinese))

    def __call__(self, texts: tf.Tensor, added: TokenFinder | None = None) -> Words:
        """The words of texts, string `[batch]`; `added` finds those that are tokens in the normalized texts."""
        decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
        code_points = decoded.values
        entries = self._look_up(code_points)
        characters = Characters(entries, tf.range(tf.size(code_points)), decoded.row_splits)
        if self._changes_characters:
            needs_more = tf.reduce_any(kind(entries) >= table.SIGMA)
            characters = tf.cond(needs_more, lambda: self._lower_rare(characters), lambda: characters)
        characters = drop(characters, table.BOUNDARY_MARK)
        return _split(characters, decoded.row_splits, added)

    def normalize(self, texts: tf.Tensor) -> tf.Tensor:
        """Texts `[batch]` with one space between words, the input for learning a vocabulary."""
        words = self(texts)
        rows = tf.RaggedTensor.from_row_splits(words.words, words.row_splits, validate=False)
        return tf.strings.reduce_join(rows, axis=-1, separator=" ")

    def _lower_rare(self, characters: Characters) -> Characters:
        """What the look-up cannot do: final sigma, one character to several, the order of combining marks."""
        characters = drop(characters, table.DELETED)
        is_sigma = kind(characters.entries) == table.SIGMA
        entries = tf.cond(
            tf.reduce_any(is_sigma), lambda: lower_sigma(characters, is_sigma), lambda: characters.entries
        )
        characters = self._look_up.expand(characters._replace(entries=entries))
        needs_order = tf.reduce_any(order(characters.entries) > 0)
        return tf.cond(needs_order, lambda: _put_marks_in_order(characters), lambda: characters)


def _put_marks_in_order(characters: Characters) -> Characters:
    """Sorts each run of combining marks by combining class, as NFD does (Unicode, definition D108)."""
    entries, sources, splits = characters
    orders = order(entries)
    run = tf.cumsum(tf.cast(orders == 0, tf.int32)) + row_ids(splits, tf.size(orders))
    key = tf.cast(run, tf.int64) * (table.ORDER_MASK + 1) + tf.cast(orders, tf.int64)
    permutation = tf.argsort(key, stable=True)
    return Characters(tf.gather(entries, permutation), tf.gather(sources, permutation), splits)


def _split(characters: Characters, source_splits: tf.Tensor, added: TokenFinder | None) -> Words:
    """Splits into runs of letters, single punctuation marks, single ideographs and added tokens."""
    entries, sources, splits = characters
    kinds = kind(entries)
    if added:
        part, ids = _parts(characters, added)
        kinds = tf.where(ids >= 0, table.LETTER, kinds)
    is_letter = kinds == table.LETTER
    joins = is_letter[1:] & is_letter[:-1]
    if added:
        joins &= part[1:] == part[:-1]
    # One element more than there are characters, because a row split may point past the last one.
    joins_previous = tf.concat([[False], joins, [False]], axis=0)
    joins_previous = tf.tensor_scatter_nd_update(joins_previous, splits[:, tf.newaxis], tf.zeros_like(splits, tf.bool))
    in_word = kinds > table.SPACE
    begins_word = in_word & ~joins_previous[: tf.size(kinds)]
    kept = tf.where(in_word)[:, 0]
    first_characters = tf.where(tf.gather(begins_word, kept))[:, 0]
    character_splits = tf.concat([first_characters, tf.shape(kept, tf.int64)], axis=0)
    row_splits = tf.searchsorted(tf.where(begins_word)[:, 0], splits, out_type=tf.int64)
    letters = tf.RaggedTensor.from_row_splits(character(tf.gather(entries, kept)), character_splits, validate=False)
    words = tf.ensure_shape(tf.strings.unicode_encode(letters, "UTF-8"), [None])
    of_words = tf.boolean_mask(ids, begins_word) if added else None
    return Words(words, row_splits, character_splits, tf.gather(sources, kept), source_splits, of_words)


def _parts(characters: Characters, added: TokenFinder) -> tuple[tf.Tensor, tf.Tensor]:
    """`(part, id)` of each character, int32 `[characters]`; see `added_tokens.Parts`."""
    entries, _, splits = characters
    kinds = kind(entries)
    # Tokens are found in a text with a space on both sides of an ideograph.
    is_ideograph = tf.cast(kinds == table.IDEOGRAPH, tf.int32)
    ends = tf.concat([[0], tf.cumsum(1 + 2 * is_ideograph)], axis=0)
    places = ends[:-1] + is_ideograph
    shown = tf.where(kinds == table.SPACE, ord(" "), character(entries))
    code_points = tf.tensor_scatter_nd_update(tf.fill([ends[-1]], ord(" ")), places[:, tf.newaxis], shown)
    parts = added(code_points, tf.gather(ends, splits))
    part = tf.searchsorted(parts.splits, places, side="right") - 1
    return part, tf.gather(parts.ids, part)
