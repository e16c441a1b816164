"""Texts to normalized words in the graph: Google's BasicTokenizer, with the offset of each character.

Added tokens, which are matched whole, are found in the graph too, however many there are.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert.text import standalone_tokenizer as table
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
from keras_bert.text.standalone_tokenizer import CHARACTER_SHIFT, SPACES, WORD_RANGES, AddedToken

_SPACE = ord(" ")
_RANGES = "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in WORD_RANGES)
_WORD_CHARACTER = rf"[\pL\pM\p{{Nd}}\p{{Nl}}\p{{Pc}}{_RANGES}]"
_CODE_POINT_BITS = 32 - CHARACTER_SHIFT


class Parts(NamedTuple):
    """The code points of a batch, cut at the added tokens in them.

    Attributes:
        splits: int32 `[parts + 1]`: part `i` is `code_points[splits[i] : splits[i + 1]]`: a token, or the text before,
            between or after tokens, which may be empty.
        ids: int32 `[parts]`: the id of a part that is a token; -1 for the others.
        row_splits: int32 `[batch + 1]`: text `i` has the parts from `row_splits[i]` to `row_splits[i + 1]`.
    """

    splits: tf.Tensor
    ids: tf.Tensor
    row_splits: tf.Tensor


class TokenFinder(tf.Module):
    """`standalone_tokenizer.AddedTokens` in the graph: a trie of the tokens, walked from all places at once."""

    def __init__(self, tokens: Mapping[str, AddedToken]) -> None:
        """`tokens`: the tokens, keyed by the text to look for."""
        super().__init__()
        listed = list(tokens.values())
        edges: dict[tuple[int, int], int] = {}
        reached = {0: -1}
        for number, content in enumerate(tokens):
            state = 0
            for code_point in map(ord, content):
                state = edges.setdefault((state, code_point), len(edges) + 1)
                reached.setdefault(state, -1)
            reached[state] = number
        keys = np.array([state << _CODE_POINT_BITS | code_point for state, code_point in edges], np.int64)
        order = np.argsort(keys)
        self._keys = tf.constant(keys[order])
        self._targets = tf.constant(np.array(list(edges.values()), np.int32)[order])
        self._reached = tf.constant([reached[state] for state in range(len(edges) + 1)], tf.int32)
        self._longest = max(map(len, tokens))
        self._ids = tf.constant([token.id for token in listed], tf.int32)
        self._flags = {
            flag: tf.constant([getattr(token, flag) for token in listed])
            for flag in ("single_word", "lstrip", "rstrip")
            if any(getattr(token, flag) for token in listed)
        }

    def found_in(self, texts: tf.Tensor) -> tf.Tensor:
        """Whether each of texts `[batch]` contains a token: bool `[batch]`. Tabs and line ends count as spaces."""
        code_points = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
        values = tf.where(code_points.values < _SPACE, _SPACE, code_points.values)
        parts = self(values, code_points.row_splits)
        before = tf.concat([[0], tf.cumsum(tf.cast(parts.ids >= 0, tf.int32))], axis=0)
        bounds = tf.gather(before, parts.row_splits)
        return bounds[1:] > bounds[:-1]

    def __call__(self, code_points: tf.Tensor, row_splits: tf.Tensor) -> Parts:
        """Cuts the code points `[code_points]` of texts with row splits `[batch + 1]`."""
        row_splits = tf.cast(row_splits, tf.int32)
        rows = row_ids(row_splits, tf.size(code_points))
        starts, ends, numbers = self._longest_from_left(code_points, tf.gather(row_splits, rows + 1))
        rows = tf.gather(rows, starts)
        first, last = tf.gather(row_splits, rows), tf.gather(row_splits, rows + 1)
        if "single_word" in self._flags:
            padded = tf.concat([[_SPACE], code_points, [_SPACE]], axis=0)
            before = tf.where(starts > first, tf.gather(padded, starts), _SPACE)
            after = tf.where(ends < last, tf.gather(padded, ends + 1), _SPACE)
            in_word = _is_word_character(before) | _is_word_character(after)
            kept = tf.where(~(in_word & tf.gather(self._flags["single_word"], numbers)))[:, 0]
            starts, ends, numbers, first, last = (
                tf.gather(column, kept) for column in (starts, ends, numbers, first, last)
            )
        if self._flags.keys() & {"lstrip", "rstrip"}:
            is_space = tf.reduce_any(code_points[:, tf.newaxis] == [ord(space) for space in SPACES], axis=1)
            others = tf.cast(tf.where(~is_space)[:, 0], tf.int32)
        if "rstrip" in self._flags:
            bounds = tf.minimum(last, tf.concat([starts[1:], last[-1:]], axis=0))
            after = tf.gather(tf.concat([others, tf.shape(code_points)], axis=0), tf.searchsorted(others, ends))
            ends = tf.where(tf.gather(self._flags["rstrip"], numbers), tf.minimum(after, bounds), ends)
        if "lstrip" in self._flags:
            bounds = tf.maximum(first, tf.concat([first[:1], ends[:-1]], axis=0))
            before = tf.gather(tf.concat([[0], others + 1], axis=0), tf.searchsorted(others, starts))
            starts = tf.where(tf.gather(self._flags["lstrip"], numbers), tf.maximum(before, bounds), starts)
        splits = tf.sort(tf.concat([row_splits, starts, ends], axis=0))
        count = tf.size(splits) - 1
        places = tf.searchsorted(splits, starts, side="right") - 1
        ids = tf.tensor_scatter_nd_update(tf.fill([count], -1), places[:, tf.newaxis], tf.gather(self._ids, numbers))
        return Parts(splits, ids, tf.concat([tf.searchsorted(splits, row_splits[:-1]), [count]], axis=0))

    def _longest_from_left(self, code_points: tf.Tensor, row_ends: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """`(starts, ends, numbers)`, each int32 `[found]`, of the leftmost-longest matches, which do not overlap."""

        def step(depth: tf.Tensor, places: tf.Tensor, states: tf.Tensor, best: tf.Tensor, ends: tf.Tensor) -> tuple:
            inside = tf.where(places + depth < tf.gather(row_ends, places))[:, 0]
            places, states = tf.gather(places, inside), tf.gather(states, inside)
            keys = tf.bitwise.left_shift(tf.cast(states, tf.int64), _CODE_POINT_BITS)
            keys += tf.cast(tf.gather(code_points, places + depth), tf.int64)
            edges = tf.minimum(tf.searchsorted(self._keys, keys), tf.size(self._keys) - 1)
            alive = tf.where(tf.gather(self._keys, edges) == keys)[:, 0]
            places, states = tf.gather(places, alive), tf.gather(self._targets, tf.gather(edges, alive))
            numbers = tf.gather(self._reached, states)
            accepted = tf.where(numbers >= 0)
            at = tf.gather(places, accepted)
            best = tf.tensor_scatter_nd_update(best, at, tf.gather_nd(numbers, accepted))
            ends = tf.tensor_scatter_nd_update(ends, at, at[:, 0] + depth + 1)
            return depth + 1, places, states, best, ends

        places = tf.range(tf.size(code_points))
        start = (tf.constant(0), places, tf.zeros_like(places), tf.fill(tf.shape(places), -1), places)
        *_, best, ends = tf.while_loop(
            lambda depth, places, *_: tf.size(places) > 0,
            step,
            start,
            shape_invariants=(tf.TensorShape([]), *[tf.TensorShape([None])] * 4),
            maximum_iterations=self._longest,
        )
        starts = tf.cast(tf.where(best >= 0)[:, 0], tf.int32)
        ends = tf.gather(ends, starts)
        overlap = tf.reduce_any(ends[:-1] > starts[1:])
        kept = tf.cond(overlap, lambda: _without_overlaps(starts, ends), lambda: tf.range(tf.size(starts)))
        starts = tf.gather(starts, kept)
        return starts, tf.gather(ends, kept), tf.gather(best, starts)


def _without_overlaps(starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
    """The indices of the sorted spans to keep, greedily from the left, so that none overlap: int32 `[kept]`."""
    count = tf.size(starts)
    following = tf.concat([tf.searchsorted(starts, ends), [count]], axis=0)
    is_kept = tf.range(count + 1) < 1

    def double(length: tf.Tensor, following: tf.Tensor, is_kept: tf.Tensor) -> tuple:
        """Pointer doubling: extends `is_kept` from the first `length` spans of the chain to the first `2 * length`."""
        reached = tf.boolean_mask(following, is_kept)[:, tf.newaxis]
        is_kept = tf.tensor_scatter_nd_update(is_kept, reached, tf.ones_like(reached[:, 0], tf.bool))
        return 2 * length, tf.gather(following, following), is_kept

    *_, is_kept = tf.while_loop(lambda length, *_: length <= count, double, (tf.constant(1), following, is_kept))
    return tf.cast(tf.where(is_kept[:-1])[:, 0], tf.int32)


def _is_word_character(code_points: tf.Tensor) -> tf.Tensor:
    """Whether each code point is a letter, digit, mark or underscore."""
    return tf.strings.regex_full_match(tf.strings.unicode_encode(code_points[:, tf.newaxis], "UTF-8"), _WORD_CHARACTER)


class Words(NamedTuple):
    """All words of a batch, concatenated.

    Attributes:
        words: string `[words]`.
        row_splits: int64 `[batch + 1]`: the words of text `i` are `words[row_splits[i] : row_splits[i + 1]]`.
        character_splits: int64 `[words + 1]`: the same for the characters of a word.
        sources: int32 `[characters]`: the index, among the batch's code points, of each character's source.
        source_splits: int64 `[batch + 1]`: the same as `row_splits`, for the code points of each text.
        added: int32 `[words]`: the id of a word that is an added token, -1 for the others; None without added tokens.
    """

    words: tf.Tensor
    row_splits: tf.Tensor
    character_splits: tf.Tensor
    sources: tf.Tensor
    source_splits: tf.Tensor
    added: tf.Tensor | None = None


class BasicTokenizer(tf.Module):
    """Cleans, lower-cases and strips accents (uncased only), and splits at whitespace, punctuation and ideographs.

    Matches the BasicTokenizer of Google's tokenization.py on any bytes. Bytes that are not UTF-8 are skipped.
    `strip_accents` and `split_chinese` are as for `WordPieceTokenizer`.
    """

    def __init__(self, lower_case: bool = True, strip_accents: bool | None = None, split_chinese: bool = True) -> None:
        super().__init__()
        self.lower_case = lower_case
        self._changes_characters = lower_case or bool(strip_accents)
        self._look_up = CharacterLookUp(load_character_table(lower_case, strip_accents, split_chinese))

    def __call__(self, texts: tf.Tensor, added: TokenFinder | None = None) -> Words:
        """The words of texts, string `[batch]`; `added` finds added tokens in the normalized texts."""
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
        """Handles what the look-up cannot: final sigma, one character to several, the order of combining marks."""
        characters = self._look_up.expand(lower_sigma(drop(characters, table.DELETED)))
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
    # One extra element, because a row split may point past the last character.
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
    """`(part, id)` of each character, int32 `[characters]`; see `Parts`."""
    entries, _, splits = characters
    kinds = kind(entries)
    # Added tokens are looked for in a text with a space on both sides of each ideograph.
    is_ideograph = tf.cast(kinds == table.IDEOGRAPH, tf.int32)
    ends = tf.concat([[0], tf.cumsum(1 + 2 * is_ideograph)], axis=0)
    places = ends[:-1] + is_ideograph
    shown = tf.where(kinds == table.SPACE, ord(" "), character(entries))
    code_points = tf.tensor_scatter_nd_update(tf.fill([ends[-1]], ord(" ")), places[:, tf.newaxis], shown)
    parts = added(code_points, tf.gather(ends, splits))
    part = tf.searchsorted(parts.splits, places, side="right") - 1
    return part, tf.gather(parts.ids, part)
