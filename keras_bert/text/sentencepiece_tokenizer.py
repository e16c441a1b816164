"""SentencePiece in the TensorFlow graph: exactly the ids of ALBERT's tokenization, with offsets.

Source: tokenization.py of google-research/albert (`preprocess_text` and `encode_pieces`).
"""

import numpy as np
import tensorflow as tf
import tensorflow_text as text

from keras_bert.files import StrPath
from keras_bert.text.albert_normalizer import AlbertNormalizer, NormalizedTexts, character_bytes
from keras_bert.text.characters import row_ids, row_offsets
from keras_bert.text.sentencepiece_vocabulary import WORD_START, SentencePieceVocabulary
from keras_bert.text.tokenizers import Texts, Tokenizer, string_batch


class SentencePieceTokenizer(Tokenizer):
    """Splits texts into the pieces of a SentencePiece model, as ALBERT does.

    A piece that ends in a digit and a comma is split again without the comma, so that no piece joins a number and a
    comma. The one difference from Google's code: there, text such as "[CLS]" is the special token if none of its
    characters is known; here, text never is.

    Attributes:
        vocabulary: the vocabulary.
        lower_case: whether texts are lower-cased; must match the vocabulary.
        quotes: whether `` and '' become "; see `AlbertNormalizer`.
    """

    vocabulary: SentencePieceVocabulary

    def __init__(
        self, vocab_file: StrPath | SentencePieceVocabulary, lower_case: bool = True, quotes: bool = True
    ) -> None:
        """`vocab_file`: the path of a SentencePiece model, or a vocabulary."""
        super().__init__()
        is_open = isinstance(vocab_file, SentencePieceVocabulary)
        self.vocabulary = vocab_file if is_open else SentencePieceVocabulary.from_file(vocab_file)  # type: ignore
        self.lower_case, self.quotes = lower_case, quotes
        self._normalizer = AlbertNormalizer(lower_case, quotes)
        with tf.init_scope():
            self._model = text.SentencepieceTokenizer(self.vocabulary.model, out_type=tf.int32)
            splits = self._number_splits()
        # By id: what a piece is replaced by, itself for most, and how many characters each of these has.
        rows = [splits.get(index, [index]) for index in range(len(self.vocabulary))]
        self._replaces = bool(splits)
        self._row_starts = tf.constant(np.cumsum([0, *map(len, rows)]), tf.int32)
        self._replacements = tf.constant([index for row in rows for index in row], tf.int32)
        lengths = [len(token.removeprefix(WORD_START)) for token in self.vocabulary.tokens]
        self._lengths = tf.constant(lengths, tf.int32)

    @property
    def resources(self) -> list:  # type: ignore[override]
        """The loaded model, which a SavedModel has to hold."""
        return [self._model]

    def tokenize(self, texts: Texts) -> tf.RaggedTensor:
        """Ids `[batch, (pieces)]` int32 of texts `[batch]`."""
        ids = self._model.tokenize(self._normalizer(string_batch(texts)).texts)
        return self._replaced(ids)[0] if self._replaces else ids

    def tokenize_with_offsets(self, texts: Texts) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """`(ids, starts, ends)`, each `[batch, (pieces)]` int32, of texts `[batch]`; see `Tokenizer`.

        Offsets leave out the space that a piece starts with.
        """
        normalized = self._normalizer(string_batch(texts))
        ids, starts, ends = self._model.tokenize_with_offsets(normalized.texts)
        first, last = self._in_characters(normalized, ids, starts.values, ends.values)
        if self._replaces:
            ids, first, last = self._replaced_with_offsets(ids, first, last)
        rows = row_ids(ids.row_splits, tf.size(first))
        splits = tf.cast(normalized.splits, tf.int32)
        row_first, row_last = tf.gather(splits[:-1], rows), tf.gather(splits[1:], rows) - 1
        # One more than there are, for texts without characters.
        starts = tf.concat([normalized.starts, [0]], axis=0)
        ends = tf.concat([normalized.ends, [0]], axis=0)
        begin = tf.gather(starts, tf.maximum(tf.minimum(first, row_last), row_first))
        end = tf.gather(ends, tf.maximum(tf.minimum(last - 1, row_last), row_first))
        # A piece of nothing but a space is between two characters.
        return ids, ids.with_values(begin), ids.with_values(tf.where(first < last, end, begin))

    def normalize(self, texts: Texts) -> tf.Tensor:
        """Texts `[batch]` as they are given to the model, the input for learning one."""
        return self._normalizer(string_batch(texts)).texts

    def _in_characters(
        self, normalized: NormalizedTexts, ids: tf.RaggedTensor, starts: tf.Tensor, ends: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Offsets in the bytes of each normalized text as indices of all characters, without leading spaces."""
        widths = character_bytes(normalized.characters)
        begins = tf.concat([[0], tf.cumsum(widths)], axis=0)
        text_bytes = row_offsets(tf.strings.length(normalized.texts), ids.row_splits, tf.size(starts))
        first = tf.searchsorted(begins, tf.cast(starts, tf.int32) + text_bytes)
        last = tf.searchsorted(begins, tf.cast(ends, tf.int32) + text_bytes)
        is_space = tf.equal(normalized.characters, ord(" "))
        others = tf.concat([tf.cast(tf.where(~is_space)[:, 0], tf.int32), tf.size(is_space)[tf.newaxis]], axis=0)
        return tf.minimum(tf.gather(others, tf.searchsorted(others, first)), last), last

    def _number_splits(self) -> dict[int, list[int]]:
        """What to put in place of the pieces that end in a digit and a comma: `{id: ids}`."""
        vocabulary = self.vocabulary
        found = [
            index
            for index, token in enumerate(vocabulary.tokens)
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
        """`(ids with numbers split, the index among the old ids that each comes from, its place in the row)`."""
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
        """As `_replaced`, with the characters of each new piece: a number's in order, then the comma."""
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
