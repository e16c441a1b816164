"""Characters of a batch of texts as entries of a table: looked up, expanded, dropped, and the final sigma."""

from typing import NamedTuple

import tensorflow as tf

from keras_bert.text import standalone_tokenizer as table
from keras_bert.text.character_table import PAGE_SIZE, CharacterTable
from keras_bert.text.vocabulary import Vocabulary


class Characters(NamedTuple):
    """The characters of a batch: table entries `[characters]`, sources `[characters]`, row splits `[batch + 1]`."""

    entries: tf.Tensor
    sources: tf.Tensor
    splits: tf.Tensor


class CharacterLookUp(tf.Module):
    """A `CharacterTable` in the graph."""

    def __init__(self, data: CharacterTable) -> None:
        super().__init__()
        self._page_starts = tf.constant(data.page_starts)
        self._pages = tf.constant(data.pages)
        self._expansions = tf.constant(data.expansions)
        self._expansion_splits = tf.constant(data.expansion_splits)

    def __call__(self, code_points: tf.Tensor) -> tf.Tensor:
        """The table entries of code points."""
        start = tf.gather(self._page_starts, tf.bitwise.right_shift(code_points, 8))
        distance = tf.gather(self._pages, start + (code_points & (PAGE_SIZE - 1)))
        return distance + tf.bitwise.left_shift(code_points, table.CHARACTER_SHIFT)

    def expand(self, characters: Characters) -> Characters:
        """Replaces each character of kind EXPANDS by its expansion."""
        entries, sources, splits = characters
        expands = kind(entries) == table.EXPANDS
        expansion = tf.where(expands, character(entries), 0)
        first = tf.gather(self._expansion_splits, expansion)
        lengths = tf.where(expands, tf.gather(self._expansion_splits, expansion + 1) - first, 1)
        ends = tf.concat([[0], tf.cumsum(lengths)], axis=0)
        origin = row_ids(ends, ends[-1])
        nth = tf.range(ends[-1]) - tf.gather(ends, origin)
        from_expansion = tf.gather(expands, origin)
        expanded = tf.gather(self._expansions, tf.where(from_expansion, tf.gather(first, origin) + nth, 0))
        entries = tf.where(from_expansion, expanded, tf.gather(entries, origin))
        return Characters(entries, tf.gather(sources, origin), tf.cast(tf.gather(ends, splits), tf.int64))


def row_ids(splits: tf.Tensor, size: int | tf.Tensor) -> tf.Tensor:
    """The row of each of `size` elements, by the row splits `[rows + 1]`: int32 `[size]`."""
    return row_offsets(tf.ones_like(splits[1:], tf.int32), splits, size)


def row_offsets(lengths: tf.Tensor, splits: tf.Tensor, size: int | tf.Tensor) -> tf.Tensor:
    """For each of `size` elements, the sum of `lengths` `[rows]` over the rows before its own: int32 `[size]`.

    `RaggedTensor.value_rowids` and `tf.repeat` build a mask [rows, longest row], which one long text blows up.
    """
    ends = tf.cast(splits[1:, tf.newaxis], tf.int32)
    return tf.cumsum(tf.scatter_nd(ends, lengths, [size + 1])[:-1])


def kind(entries: tf.Tensor) -> tf.Tensor:
    """The kind of each entry."""
    return entries & table.KIND_MASK


def order(entries: tf.Tensor) -> tf.Tensor:
    """The order of each entry among combining marks."""
    return tf.bitwise.right_shift(entries, table.ORDER_SHIFT) & table.ORDER_MASK


def casing(entries: tf.Tensor) -> tf.Tensor:
    """What each entry means to the rule of the final sigma."""
    return tf.bitwise.right_shift(entries, table.CASING_SHIFT) & table.CASING_MASK


def character(entries: tf.Tensor) -> tf.Tensor:
    """The character of each entry."""
    return tf.bitwise.right_shift(entries, table.CHARACTER_SHIFT) & table.CHARACTER_MASK


def drop(characters: Characters, highest_kind: int) -> Characters:
    """Removes characters of kinds up to `highest_kind`."""
    return kept(characters, kind(characters.entries) > highest_kind)


def kept(characters: Characters, keep: tf.Tensor) -> Characters:
    """The characters with a true in `keep`; most batches lose none and stay unchanged."""

    def keep_others() -> Characters:
        found = tf.where(keep)[:, 0]
        splits = tf.searchsorted(found, characters.splits, out_type=tf.int64)
        return Characters(tf.gather(characters.entries, found), tf.gather(characters.sources, found), splits)

    return tf.cond(tf.reduce_all(keep), lambda: characters, keep_others)


def lower_sigma(characters: Characters, is_sigma: tf.Tensor) -> tf.Tensor:
    """Entries with σ, or ς at the end of a word: after a cased letter and not before one (Unicode, table 3-17).

    Case-ignorable characters are skipped; a space or the end of the text is not cased.
    """
    places = tf.where(casing(characters.entries) != table.CASE_IGNORABLE)[:, 0]
    cased = tf.gather(casing(characters.entries), places) == table.CASED
    rows = tf.gather(row_ids(characters.splits, tf.size(is_sigma)), places)
    same_row = rows[1:] == rows[:-1]
    after_cased = tf.concat([[False], cased[:-1] & same_row], axis=0)
    before_cased = tf.concat([cased[1:] & same_row, [False]], axis=0)
    final = after_cased & ~before_cased & tf.gather(is_sigma, places)
    entries = tf.where(is_sigma, table.pack(ord("σ"), table.LETTER), characters.entries)
    final_places = tf.boolean_mask(places, final)[:, tf.newaxis]
    return tf.tensor_scatter_nd_update(
        entries, final_places, tf.fill([tf.size(final_places)], table.pack(ord("ς"), table.LETTER))
    )


def continues_word(vocabulary: Vocabulary, ids: tf.Tensor) -> tf.Tensor:
    """Whether tokens continue the word of the token before them on the last axis: bool, of the shape of `ids`.

    A piece with "##" always does. SentencePiece has no such mark: a piece without "▁" may follow a word or punctuation.
    It continues a word after a piece with letters or digits, and after a "▁" alone, which joins what follows. The first
    of a row is judged as if it followed itself.
    """
    continues = tf.gather(tf.constant(vocabulary.is_continuation), ids)
    if vocabulary.is_continued.all():
        return continues
    before = tf.concat([ids[..., :1], ids[..., :-1]], axis=-1)
    is_joined = tf.equal(before, vocabulary.word_start_id) & tf.not_equal(ids, vocabulary.word_start_id)
    return continues & tf.gather(tf.constant(vocabulary.is_continued), before) | is_joined
