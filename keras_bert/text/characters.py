"""BERT's basic tokenization as one table over all Unicode code points, and texts as entries of that table.

Google's BasicTokenizer (tokenization.py) handles each character on its own, except for the final sigma and the order of
combining marks. So a table replaces it, with the output character and a few properties of every code point: the graph
needs one look-up where Python needs `unicodedata`.

`python tools/make_character_table.py` builds the table from Python's `unicodedata`. It is shipped as data, so that ids
do not depend on the version of Python. `standalone_tokenizer.py`, which must stand alone, defines the entries."""

import dataclasses
import os
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_bert.text import standalone_tokenizer as table
from keras_bert.text.standalone_tokenizer import FILE, IDEOGRAPH, KIND_MASK, LETTER, stored_prefix
from keras_bert.text.vocabulary import Vocabulary

CODE_POINTS = 0x110000
PAGE_SIZE = 256
ALBERT_FILE = os.path.join(os.path.dirname(FILE), "albert_table.npz")

# (lower_case, strip_accents): BERT's own two, and the other two that Hugging Face's tokenizer supports.
SETTINGS = ((False, False), (True, True), (True, False), (False, True))


@dataclasses.dataclass
class CharacterTable:
    """The packed properties of every code point; equal pages are stored once.

    The entry of a code point is `pages[page_starts[code_point >> 8] + (code_point & 255)] + (code_point << 11)`,
    in wrapping int32: pages hold the *distance* to the output character, which makes most of them equal.

    Attributes:
        page_starts: int32 `[4352]`.
        pages: int32 `[pages * 256]`.
        expansions: int32, the packed characters of every code point that becomes several, concatenated.
        expansion_splits: int32; expansion `i` is `expansions[expansion_splits[i] : expansion_splits[i + 1]]`.
    """

    page_starts: npt.NDArray[np.int32]
    pages: npt.NDArray[np.int32]
    expansions: npt.NDArray[np.int32]
    expansion_splits: npt.NDArray[np.int32]


def load_character_table(
    lower_case: bool, strip_accents: bool | None = None, split_chinese: bool = True
) -> CharacterTable:
    """The table for these settings of a `WordPieceTokenizer`."""
    prefix = stored_prefix(lower_case, strip_accents)
    with np.load(FILE, allow_pickle=False) as arrays:
        table = CharacterTable(*(arrays[prefix + field.name] for field in dataclasses.fields(CharacterTable)))
    if split_chinese:
        return table
    # A distance has the lowest bits of its entry, so both arrays are changed in the same way.
    return dataclasses.replace(table, pages=_as_letters(table.pages), expansions=_as_letters(table.expansions))


def load_albert_table(lower_case: bool) -> CharacterTable:
    """The table of ALBERT's normalization: NFKD without combining marks, then lower case or not."""
    prefix = albert_prefix(lower_case)
    with np.load(ALBERT_FILE, allow_pickle=False) as arrays:
        return CharacterTable(*(arrays[prefix + field.name] for field in dataclasses.fields(CharacterTable)))


def _as_letters(packed: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Turns ideographs into letters."""
    return np.where(packed & KIND_MASK == IDEOGRAPH, packed - (IDEOGRAPH - LETTER), packed)


def recorded_unicode_version() -> str:
    """The version of Unicode that the shipped table was built from."""
    with np.load(FILE, allow_pickle=False) as arrays:
        return str(arrays["unicode_version"])


def albert_prefix(lower_case: bool) -> str:
    """The prefix of the names of a setting's arrays in ALBERT's file."""
    return "uncased_" if lower_case else "cased_"


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
        """Replaces each character of kind EXPANDS with its expansion."""
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
    """The casing of each entry, for the final-sigma rule."""
    return tf.bitwise.right_shift(entries, table.CASING_SHIFT) & table.CASING_MASK


def character(entries: tf.Tensor) -> tf.Tensor:
    """The character of each entry."""
    return tf.bitwise.right_shift(entries, table.CHARACTER_SHIFT) & table.CHARACTER_MASK


def drop(characters: Characters, highest_kind: int) -> Characters:
    """Removes characters of kinds up to `highest_kind`."""
    return kept(characters, kind(characters.entries) > highest_kind)


def kept(characters: Characters, keep: tf.Tensor) -> Characters:
    """The characters where `keep` is true; most batches lose none and stay unchanged."""

    def keep_others() -> Characters:
        found = tf.where(keep)[:, 0]
        splits = tf.searchsorted(found, characters.splits, out_type=tf.int64)
        return Characters(tf.gather(characters.entries, found), tf.gather(characters.sources, found), splits)

    return tf.cond(tf.reduce_all(keep), lambda: characters, keep_others)


def lower_sigma(characters: Characters) -> Characters:
    """Replaces Σ with σ, or with ς at the end of a word: after a cased letter and not before one (Unicode, table 3-17).

    Case-ignorable characters are skipped; a space or the end of the text is not cased.
    """
    is_sigma = kind(characters.entries) == table.SIGMA
    entries = tf.cond(
        tf.reduce_any(is_sigma), lambda: _with_lower_sigma(characters, is_sigma), lambda: characters.entries
    )
    return characters._replace(entries=entries)


def _with_lower_sigma(characters: Characters, is_sigma: tf.Tensor) -> tf.Tensor:
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
