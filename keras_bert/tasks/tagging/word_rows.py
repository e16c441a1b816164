"""Lays out sentences of words as rows, long ones in windows, and locates the first piece of every word."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.data.windows import blocks, offsets
from keras_bert.inputs.rows import flat_rows
from keras_bert.inputs.windows import Words, with_unknown, word_windows
from keras_bert.text.tokenizers import Tokenizer

_WORDS_AT_ONCE = 1 << 16


@dataclasses.dataclass
class WordRows:
    """Sentences of words as rows; see `lay_out_words`.

    Attributes:
        rows: the rows, without extras.
        places: int64 [words], the index in `rows.ids` of each word's first piece, whose output labels the word.
        row_sentences: int64 [rows], the sentence of each row.
        vanished: int64 [n], the words without any piece, which are replaced by [UNK].
        cut: int64 [n], the words with more pieces than fit in a row, which are truncated.
    """

    rows: TokenRows
    places: np.ndarray
    row_sentences: np.ndarray
    vanished: np.ndarray
    cut: np.ndarray

    def token_values(self, values: ArrayLike) -> np.ndarray:
        """int32 [tokens]: each word's value at its place, -1 at all other tokens."""
        array = np.full(len(self.rows.ids), -1, np.int32)
        array[self.places] = values
        return array

    def sentence_flags(self, starts: ArrayLike) -> dict[str, np.ndarray]:
        """`sentence_starts` and `sentence_ends`, int32 [rows]: whether the row labels a sentence's first or last word.

        Args:
            starts: int [sentences + 1], as for `lay_out_words`.
        """
        starts, flags = np.asarray(starts), {}
        for name, words in (("sentence_starts", starts[:-1]), ("sentence_ends", starts[1:] - 1)):
            flags[name] = np.zeros(len(self.rows), np.int32)
            flags[name][np.searchsorted(self.rows.starts, self.places[words], side="right") - 1] = 1
        return flags


def lay_out_words(words: Sequence[str], starts: ArrayLike, tokenizer: Tokenizer, max_length: int) -> WordRows:
    """Lays out sentences as rows [CLS] pieces [SEP], long ones in windows; see `inputs.windows.word_windows`.

    Args:
        words: all words.
        starts: int [sentences + 1], where each sentence starts; none is empty.
        max_length: the most tokens of a row, special tokens included; at least 3.

    Returns: the rows; the windows of a sentence are consecutive.
    """
    if max_length < 3:
        raise ValueError(f"max_length: needs at least 3, [CLS], a piece and [SEP]. Received: {max_length}.")
    starts, vocabulary = np.asarray(starts), tokenizer.vocabulary
    capacity = max_length - vocabulary.row_pattern.special_tokens(1)
    parts, tokens = [], 0
    with tf.device("CPU"):
        pieces, numbers = _pieces(words, tokenizer)
        counts = pieces.row_lengths().numpy()[numbers]
        pieces = with_unknown(pieces, vocabulary)
        for first, end in blocks(starts, _WORDS_AT_ONCE):
            word_pieces = tf.gather(pieces, numbers[starts[first] : starts[end]])
            splits = (word_pieces.row_splits, starts[first : end + 1] - starts[first])
            as_words = Words(word_pieces.values, *(tf.cast(split, tf.int32) for split in splits))
            found = word_windows(as_words, max_length, vocabulary)
            order = tf.argsort(found.text, stable=True)
            ids, lengths, _ = (column.numpy() for column in flat_rows([found.spans.taken(order)], vocabulary))
            row_starts = tokens + np.cumsum(lengths, dtype=np.int64) - lengths
            row = tf.gather(tf.math.invert_permutation(order), found.window).numpy()
            sentences = first + tf.gather(found.text, order).numpy().astype(np.int64)
            parts.append((ids, lengths, sentences, row_starts[row] + found.column.numpy()))
            tokens += len(ids)
    ids, lengths, sentences, places = (np.concatenate(column) for column in zip(*parts, strict=True))
    rows = TokenRows(ids, offsets(lengths), lengths, {}, last_segment=vocabulary.row_pattern.last_segment)
    return WordRows(rows, places, sentences, np.flatnonzero(counts == 0), np.flatnonzero(counts > capacity))


def _pieces(words: Sequence[str], tokenizer: Tokenizer) -> tuple[tf.RaggedTensor, np.ndarray]:
    """(the pieces of distinct words, `[distinct words, (pieces)]`; the index of each word in these, int64 [words])."""
    number = {word: index for index, word in enumerate(dict.fromkeys(words))}
    distinct = list(number)
    blocks = range(0, max(len(distinct), 1), _WORDS_AT_ONCE)
    pieces = tf.concat([tokenizer(distinct[first : first + _WORDS_AT_ONCE]) for first in blocks], axis=0)
    return pieces, np.fromiter((number[word] for word in words), np.int64, len(words))
