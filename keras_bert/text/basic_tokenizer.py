"""Texts to normalized words in the graph: Google's BasicTokenizer, with the offset of each character."""

from typing import NamedTuple

import tensorflow as tf

from keras_bert.text import standalone_tokenizer as table
from keras_bert.text.character_table import PAGE_SIZE, load_character_table


class Words(NamedTuple):
    """All words of a batch, concatenated.

    Attributes:
        words: string `[words]`.
        row_splits: int64 `[batch + 1]`: the words of text `i` are `words[row_splits[i] : row_splits[i + 1]]`.
        character_splits: int64 `[words + 1]`: the same for the characters of a word.
        sources: int32 `[characters]`: the index, in the code points of the batch, that a character comes from.
        source_splits: int64 `[batch + 1]`: the same as `row_splits`, for the code points of each text.
    """

    words: tf.Tensor
    row_splits: tf.Tensor
    character_splits: tf.Tensor
    sources: tf.Tensor
    source_splits: tf.Tensor


class _Characters(NamedTuple):
    """The characters of a batch: table entries `[characters]`, sources `[characters]`, row splits `[batch + 1]`."""

    entries: tf.Tensor
    sources: tf.Tensor
    splits: tf.Tensor


class BasicTokenizer(tf.Module):
    """Cleans, lower-cases and strips accents (uncased only), and splits at whitespace, punctuation and ideographs.

    Equal to the BasicTokenizer of Google's tokenization.py on any bytes. Bytes that are not UTF-8 are skipped.
    `strip_accents` and `split_chinese` are as for `WordPieceTokenizer`.
    """

    def __init__(self, lower_case: bool = True, strip_accents: bool | None = None, split_chinese: bool = True) -> None:
        super().__init__()
        self.lower_case = lower_case
        self._changes_characters = lower_case or bool(strip_accents)
        data = load_character_table(lower_case, strip_accents, split_chinese)
        self._page_starts = tf.constant(data.page_starts)
        self._pages = tf.constant(data.pages)
        self._expansions = tf.constant(data.expansions)
        self._expansion_splits = tf.constant(data.expansion_splits)

    def __call__(self, texts: tf.Tensor) -> Words:
        """The words of texts, string `[batch]`."""
        decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
        code_points = decoded.values
        entries = self._look_up(code_points)
        characters = _Characters(entries, tf.range(tf.size(code_points)), decoded.row_splits)
        if self._changes_characters:
            needs_more = tf.reduce_any(_kind(entries) >= table.SIGMA)
            characters = tf.cond(needs_more, lambda: self._lower_rare(characters), lambda: characters)
        characters = _drop(characters, table.BOUNDARY_MARK)
        return _split(characters, decoded.row_splits)

    def normalize(self, texts: tf.Tensor) -> tf.Tensor:
        """Texts `[batch]` with one space between words, the input for learning a vocabulary."""
        words = self(texts)
        rows = tf.RaggedTensor.from_row_splits(words.words, words.row_splits, validate=False)
        return tf.strings.reduce_join(rows, axis=-1, separator=" ")

    def _look_up(self, code_points: tf.Tensor) -> tf.Tensor:
        start = tf.gather(self._page_starts, tf.bitwise.right_shift(code_points, 8))
        distance = tf.gather(self._pages, start + (code_points & (PAGE_SIZE - 1)))
        return distance + tf.bitwise.left_shift(code_points, table.CHARACTER_SHIFT)

    def _lower_rare(self, characters: _Characters) -> _Characters:
        """What the look-up cannot do: final sigma, one character to several, the order of combining marks."""
        characters = _drop(characters, table.DELETED)
        is_sigma = _kind(characters.entries) == table.SIGMA
        entries = tf.cond(
            tf.reduce_any(is_sigma), lambda: _lower_sigma(characters, is_sigma), lambda: characters.entries
        )
        characters = self._expand(characters._replace(entries=entries))
        needs_order = tf.reduce_any(_order(characters.entries) > 0)
        return tf.cond(needs_order, lambda: _put_marks_in_order(characters), lambda: characters)

    def _expand(self, characters: _Characters) -> _Characters:
        """Replaces each character of kind EXPANDS by its expansion."""
        entries, sources, splits = characters
        expands = _kind(entries) == table.EXPANDS
        expansion = tf.where(expands, _character(entries), 0)
        first = tf.gather(self._expansion_splits, expansion)
        lengths = tf.where(expands, tf.gather(self._expansion_splits, expansion + 1) - first, 1)
        ends = tf.concat([[0], tf.cumsum(lengths)], axis=0)
        origin = row_ids(ends, ends[-1])
        nth = tf.range(ends[-1]) - tf.gather(ends, origin)
        from_expansion = tf.gather(expands, origin)
        expanded = tf.gather(self._expansions, tf.where(from_expansion, tf.gather(first, origin) + nth, 0))
        entries = tf.where(from_expansion, expanded, tf.gather(entries, origin))
        return _Characters(entries, tf.gather(sources, origin), tf.cast(tf.gather(ends, splits), tf.int64))


def row_ids(splits: tf.Tensor, size: int | tf.Tensor) -> tf.Tensor:
    """The row of each of `size` elements, by the row splits `[rows + 1]`: int32 `[size]`."""
    return row_offsets(tf.ones_like(splits[1:], tf.int32), splits, size)


def row_offsets(lengths: tf.Tensor, splits: tf.Tensor, size: int | tf.Tensor) -> tf.Tensor:
    """For each of `size` elements, the sum of `lengths` `[rows]` over the rows before its own: int32 `[size]`.

    `RaggedTensor.value_rowids` and `tf.repeat` build a mask [rows, longest row], which one long text blows up.
    """
    ends = tf.cast(splits[1:, tf.newaxis], tf.int32)
    return tf.cumsum(tf.scatter_nd(ends, lengths, [size + 1])[:-1])


def _kind(entries: tf.Tensor) -> tf.Tensor:
    return entries & table.KIND_MASK


def _order(entries: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.right_shift(entries, table.ORDER_SHIFT) & table.ORDER_MASK


def _casing(entries: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.right_shift(entries, table.CASING_SHIFT) & table.CASING_MASK


def _character(entries: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.right_shift(entries, table.CHARACTER_SHIFT) & table.CHARACTER_MASK


def _drop(characters: _Characters, highest_kind: int) -> _Characters:
    """Removes characters of kinds up to `highest_kind`; most batches have none and stay unchanged."""
    keep = _kind(characters.entries) > highest_kind

    def keep_others() -> _Characters:
        kept = tf.where(keep)[:, 0]
        splits = tf.searchsorted(kept, characters.splits, out_type=tf.int64)
        return _Characters(tf.gather(characters.entries, kept), tf.gather(characters.sources, kept), splits)

    return tf.cond(tf.reduce_all(keep), lambda: characters, keep_others)


def _lower_sigma(characters: _Characters, is_sigma: tf.Tensor) -> tf.Tensor:
    """Entries with σ, or ς at the end of a word: after a cased letter and not before one (Unicode, table 3-17).

    Case-ignorable characters are skipped; a space or the end of the text is not cased.
    """
    places = tf.where(_casing(characters.entries) != table.CASE_IGNORABLE)[:, 0]
    cased = tf.gather(_casing(characters.entries), places) == table.CASED
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


def _put_marks_in_order(characters: _Characters) -> _Characters:
    """Sorts each run of combining marks by combining class, as NFD does (Unicode, definition D108)."""
    entries, sources, splits = characters
    order = _order(entries)
    run = tf.cumsum(tf.cast(order == 0, tf.int32)) + row_ids(splits, tf.size(order))
    key = tf.cast(run, tf.int64) * (table.ORDER_MASK + 1) + tf.cast(order, tf.int64)
    permutation = tf.argsort(key, stable=True)
    return _Characters(tf.gather(entries, permutation), tf.gather(sources, permutation), splits)


def _split(characters: _Characters, source_splits: tf.Tensor) -> Words:
    """Splits into runs of letters, single punctuation marks and single ideographs."""
    entries, sources, splits = characters
    kind = _kind(entries)
    is_letter = kind == table.LETTER
    # One element more than there are characters, because a row split may point past the last one.
    joins_previous = tf.concat([[False], is_letter[1:] & is_letter[:-1], [False]], axis=0)
    joins_previous = tf.tensor_scatter_nd_update(joins_previous, splits[:, tf.newaxis], tf.zeros_like(splits, tf.bool))
    in_word = kind > table.SPACE
    begins_word = in_word & ~joins_previous[: tf.size(kind)]
    kept = tf.where(in_word)[:, 0]
    first_characters = tf.where(tf.gather(begins_word, kept))[:, 0]
    character_splits = tf.concat([first_characters, tf.shape(kept, tf.int64)], axis=0)
    row_splits = tf.searchsorted(tf.where(begins_word)[:, 0], splits, out_type=tf.int64)
    letters = tf.RaggedTensor.from_row_splits(_character(tf.gather(entries, kept)), character_splits, validate=False)
    words = tf.ensure_shape(tf.strings.unicode_encode(letters, "UTF-8"), [None])
    return Words(words, row_splits, character_splits, tf.gather(sources, kept), source_splits)
