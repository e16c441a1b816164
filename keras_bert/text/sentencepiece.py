"""SentencePiece in the TensorFlow graph: exactly the ids of ALBERT's tokenization, with offsets.

Source: tokenization.py of google-research/albert (`preprocess_text` and `encode_pieces`). Its normalization (one space
between words, NFKD, no accents, lower case) handles each character on its own, except for white space and the final
sigma, so a table look-up does the rest (see `characters.py`).
"""

import hashlib
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow_text.python.ops.sentencepiece_tokenizer import gen_sentencepiece_tokenizer as ops

from keras_bert.core.files import StrPath
from keras_bert.core.runtime import stderr_withheld
from keras_bert.core.settings import checked
from keras_bert.text import standalone_tokenizer as table
from keras_bert.text.characters import (
    CharacterLookUp,
    Characters,
    character,
    drop,
    kept,
    kind,
    load_albert_table,
    lower_sigma,
    row_ids,
    row_offsets,
)
from keras_bert.text.sentencepiece_vocabulary import WORD_START, SentencePieceVocabulary
from keras_bert.text.tokenizers import Texts, Tokenizer, string_batch, traced_once

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
    """Matches `preprocess_text` on any bytes; bytes that are not UTF-8 are skipped.

    Args:
        quotes: whether `` and '' become ", as in transformers' tokenizer but not in Google's.
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
            characters = lower_sigma(characters)
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
        # The number of non-space characters before each character.
        before = tf.cumsum(tf.cast(~is_space, tf.int32), exclusive=True)
        after_word = tf.equal(tf.gather(word_rows, before), rows)
        follows = ~is_space[1:] & tf.equal(rows[1:], rows[:-1])
        next_is_word = tf.concat([follows, tf.zeros([tf.minimum(tf.size(rows), 1)], tf.bool)], axis=0)
        return ~is_space | (after_word & next_is_word)


def _double_quotes(code_points: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """`(code points with " for the first of each `` and '', whether each code point is the second of such a pair)`."""
    nothing = tf.zeros_like(code_points, tf.bool)
    # Whether each character repeats the one before it in the same text.
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
    """The number of bytes of each code point in UTF-8: int32."""
    return 1 + tf.add_n([tf.cast(characters > most, tf.int32) for most in (0x7F, 0x7FF, 0xFFFF)])


class _NamedModel(tf.saved_model.experimental.TrackableResource):
    """A model with a name: without one, the kernel that made it owns it, and setting a seed clears all kernels."""

    def __init__(self, model: bytes) -> None:
        self._model = model
        super().__init__()
        _ = self.resource_handle  # Creates the resource.

    def _create_resource(self) -> tf.Tensor:
        return ops.sentencepiece_op(model=self._model, shared_name=hashlib.sha256(self._model).hexdigest())


class SentencePieceModel(tf.Module):
    """A SentencePiece model as a tokenizer, with the ops of tensorflow-text's."""

    def __init__(self, model: bytes) -> None:
        super().__init__()
        with tf.init_scope(), stderr_withheld():  # Loading reports that there is no normalization.
            self._model = _NamedModel(model)

    def tokenize(self, texts: Texts) -> tf.RaggedTensor:
        """Ids `[batch, (pieces)]` int32 of texts `[batch]`."""
        ids, splits = ops.sentencepiece_tokenize_op(*self._arguments(texts))
        return tf.RaggedTensor.from_row_splits(ids, splits, validate=False)

    def tokenize_with_offsets(self, texts: Texts) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """`(ids, starts, ends)`, each `[batch, (pieces)]`, of texts `[batch]`; offsets in bytes."""
        ids, splits, starts, ends = ops.sentencepiece_tokenize_with_offsets_op(*self._arguments(texts))
        columns = (tf.RaggedTensor.from_row_splits(values, splits, validate=False) for values in (ids, starts, ends))
        return tuple(columns)  # type: ignore[return-value]

    def _arguments(self, texts: Texts) -> tuple[Any, ...]:
        """The model, the texts, and no sampling, no added ids, no reversal."""
        return (self._model.resource_handle, string_batch(texts), 0, 1.0, False, False, False, tf.int32)


def in_characters(
    texts: tf.Tensor,
    characters: tf.Tensor,
    is_space: tf.Tensor,
    ids: tf.RaggedTensor,
    starts: tf.Tensor,
    ends: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Converts byte offsets in each text to indices into the batch's characters, excluding a piece's leading spaces.

    Args:
        texts: string `[batch]`.
        characters: int32 `[characters]`, the code points of all texts.
        is_space: bool `[characters]`.
        ids: `[batch, (pieces)]`.
        starts, ends: int `[pieces]`, in bytes.
    """
    begins = tf.concat([[0], tf.cumsum(character_bytes(characters))], axis=0)
    text_bytes = row_offsets(tf.strings.length(texts), ids.row_splits, tf.size(starts))
    first = tf.searchsorted(begins, tf.cast(starts, tf.int32) + text_bytes)
    last = tf.searchsorted(begins, tf.cast(ends, tf.int32) + text_bytes)
    others = tf.concat([tf.cast(tf.where(~is_space)[:, 0], tf.int32), tf.size(is_space)[tf.newaxis]], axis=0)
    return tf.minimum(tf.gather(others, tf.searchsorted(others, first)), last), last


class SentencePieceTokenizer(Tokenizer):
    """Splits texts into the pieces of a SentencePiece model, as ALBERT does.

    A piece that ends in a digit and a comma is split again without the comma, so that no piece joins a number and a
    comma. The one difference from Google's code: there, text such as "[CLS]" is the special token if none of its
    characters is known; here, text never is.

    Attributes:
        lower_case: whether texts are lower-cased; must match the vocabulary.
        quotes: whether `` and '' become "; see `AlbertNormalizer`.
    """

    vocabulary: SentencePieceVocabulary

    @checked
    def __init__(
        self, vocab_file: StrPath | SentencePieceVocabulary, lower_case: bool = True, quotes: bool = True
    ) -> None:
        """`vocab_file`: the path of a SentencePiece model, or a vocabulary."""
        super().__init__()
        is_open = isinstance(vocab_file, SentencePieceVocabulary)
        self.vocabulary = vocab_file if is_open else SentencePieceVocabulary.from_file(vocab_file)  # type: ignore
        self.lower_case, self.quotes = lower_case, quotes
        self._normalizer = AlbertNormalizer(lower_case, quotes)
        self._model = SentencePieceModel(self.vocabulary.model)
        self.resources = [self._model]
        with tf.init_scope():
            splits = self._number_splits()
        # By id: the replacements of a piece, which for most is the piece itself, and the number of its characters.
        rows = [splits.get(index, [index]) for index in range(len(self.vocabulary))]
        self._replaces = bool(splits)
        self._row_starts = tf.constant(np.cumsum([0, *map(len, rows)]), tf.int32)
        self._replacements = tf.constant([index for row in rows for index in row], tf.int32)
        lengths = [len(token.removeprefix(WORD_START)) for token in self.vocabulary.tokens]
        self._lengths = tf.constant(lengths, tf.int32)

    @traced_once
    def tokenize(self, texts: Texts) -> tf.RaggedTensor:
        """Ids `[batch, (pieces)]` int32 of texts `[batch]`."""
        ids = self._model.tokenize(self._normalizer(string_batch(texts)).texts)
        return self._replaced(ids)[0] if self._replaces else ids

    @traced_once
    def tokenize_with_offsets(self, texts: Texts) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """`(ids, starts, ends)`, each `[batch, (pieces)]` int32, of texts `[batch]`; see `Tokenizer`.

        Offsets exclude a piece's leading space.
        """
        normalized = self._normalizer(string_batch(texts))
        ids, starts, ends = self._model.tokenize_with_offsets(normalized.texts)
        is_space = tf.equal(normalized.characters, ord(" "))
        first, last = in_characters(normalized.texts, normalized.characters, is_space, ids, starts.values, ends.values)
        if self._replaces:
            ids, first, last = self._replaced_with_offsets(ids, first, last)
        rows = row_ids(ids.row_splits, tf.size(first))
        splits = tf.cast(normalized.splits, tf.int32)
        row_first, row_last = tf.gather(splits[:-1], rows), tf.gather(splits[1:], rows) - 1
        # With one extra, because a text without characters may point past the last one.
        starts = tf.concat([normalized.starts, [0]], axis=0)
        ends = tf.concat([normalized.ends, [0]], axis=0)
        begin = tf.gather(starts, tf.maximum(tf.minimum(first, row_last), row_first))
        end = tf.gather(ends, tf.maximum(tf.minimum(last - 1, row_last), row_first))
        # A piece that is only a space lies between two characters, so its span is empty.
        return ids, ids.with_values(begin), ids.with_values(tf.where(first < last, end, begin))

    def normalize(self, texts: Texts) -> tf.Tensor:
        """Texts `[batch]` as the model receives them, the input for learning one."""
        return self._normalizer(string_batch(texts)).texts

    def _number_splits(self) -> dict[int, list[int]]:
        """The replacements of the pieces that end in a digit and a comma: `{id: ids}`."""
        vocabulary = self.vocabulary
        found = [
            index
            for index, token in enumerate(vocabulary.tokens[: vocabulary.num_pieces])
            if vocabulary.is_piece[index] and len(token) > 1 and token[-1] == "," and token[-2].isdigit()
        ]
        splits: dict[int, list[int]] = {}
        if not found:
            return splits
        rest = [vocabulary.tokens[index][:-1].replace(WORD_START, "") for index in found]
        for index, pieces in zip(found, self._model.tokenize(rest).to_list()):
            if not vocabulary.tokens[index].startswith(WORD_START):
                first = vocabulary.tokens[pieces[0]]
                if first == WORD_START:
                    pieces = pieces[1:]
                elif first.startswith(WORD_START):
                    pieces = [vocabulary.ids.get(first[1:], vocabulary.unk_id), *pieces[1:]]
            splits[index] = [*pieces, vocabulary.ids.get(",", vocabulary.unk_id)]
        return splits

    def _replaced(self, ids: tf.RaggedTensor) -> tuple[tf.RaggedTensor, tf.Tensor, tf.Tensor]:
        """`(ids with numbers split, the index of the old id behind each, its place in that id's replacements)`."""
        starts = tf.gather(self._row_starts, ids.values)
        counts = tf.gather(self._row_starts, ids.values + 1) - starts
        ends = tf.concat([[0], tf.cumsum(counts)], axis=0)
        origin = row_ids(tf.cast(ends, tf.int64), ends[-1])
        place = tf.range(ends[-1]) - tf.gather(ends, origin)
        values = tf.gather(self._replacements, tf.gather(starts, origin) + place)
        splits = tf.cast(tf.gather(ends, ids.row_splits), tf.int64)
        return tf.RaggedTensor.from_row_splits(values, splits, validate=False), origin, place

    def _replaced_with_offsets(
        self, ids: tf.RaggedTensor, first: tf.Tensor, last: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.Tensor, tf.Tensor]:
        """`(ids with numbers split, starts and ends in characters)`: the number's pieces in order, then the comma."""
        found, origin, place = self._replaced(ids)
        starts = tf.gather(self._row_starts, ids.values)
        counts = tf.gather(self._row_starts, ids.values + 1) - starts
        lengths = tf.gather(self._lengths, found.values)
        before = tf.cumsum(lengths, exclusive=True)
        row_first = tf.gather(before, tf.range(tf.size(origin)) - place)
        old_first, old_last = tf.gather(first, origin), tf.gather(last, origin)
        is_split, is_comma = tf.gather(counts, origin) > 1, tf.equal(place, tf.gather(counts, origin) - 1)
        new_first = tf.minimum(old_first + before - row_first, old_last - 1)
        new_last = tf.where(is_comma, old_last, tf.minimum(new_first + lengths, old_last - 1))
        new_first = tf.where(is_comma, old_last - 1, new_first)
        return found, tf.where(is_split, new_first, old_first), tf.where(is_split, new_last, old_last)
