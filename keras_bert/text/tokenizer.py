"""WordPiece in the TensorFlow graph: exactly the ids of Google's original tokenization, with offsets.

Source: tokenization.py of google-research/bert (BasicTokenizer, then WordpieceTokenizer).
"""

import tensorflow as tf
import tensorflow_text as text

from keras_bert.text.basic_tokenizer import BasicTokenizer, row_offsets
from keras_bert.text.plain_tokenizer import PlainTokenizer
from keras_bert.text.vocabulary import CONTINUATION, UNK, Vocabulary

MAX_CHARACTERS_PER_WORD = 200  # max_input_chars_per_word in tokenization.py; a longer word is one [UNK]
MAX_BYTES_PER_WORD = 4 * MAX_CHARACTERS_PER_WORD
TOO_MANY_BYTES = b"x" * (MAX_BYTES_PER_WORD + 1)


class WordPieceTokenizer(tf.Module):
    """Splits texts into the pieces of a vocabulary (paper, section 3, "Input/Output Representations").

    Works eagerly, in `tf.function`, in `tf.data` (parallel maps too) and in a SavedModel, which then holds all that it
    needs. Special tokens are not added, and `[MASK]` in a text is the word `[`, `mask`, `]`, as in the original.

    Attributes:
        vocabulary: the `Vocabulary`.
        lower_case: whether texts are lower-cased and, by default, lose their accents; must be what the vocabulary was
            made with.
        strip_accents: whether accents are taken off; None: where texts are lower-cased.
        split_chinese: whether every ideograph is a word.
    """

    def __init__(self, vocab_file, lower_case=True, strip_accents=None, split_chinese=True):
        """`vocab_file`: the path of a `vocab.txt` or a `tokenizer.json`, or a `Vocabulary`."""
        super().__init__()
        self.vocabulary = vocab_file if isinstance(vocab_file, Vocabulary) else Vocabulary.from_file(vocab_file)
        self.lower_case, self.strip_accents, self.split_chinese = lower_case, strip_accents, split_chinese
        keeps_letters = not lower_case and not strip_accents
        self._plain = PlainTokenizer(self.vocabulary, lower_case, keeps_letters, MAX_CHARACTERS_PER_WORD)
        self._basic = BasicTokenizer(lower_case, strip_accents, split_chinese)
        piece_lengths = [len(token.removeprefix(CONTINUATION)) for token in self.vocabulary.tokens]
        self._piece_lengths = tf.constant(piece_lengths, tf.int32)
        self._word_pieces = text.FastWordpieceTokenizer(
            self.vocabulary.tokens,
            suffix_indicator=CONTINUATION,
            max_bytes_per_word=MAX_BYTES_PER_WORD,
            token_out_type=tf.int32,
            unknown_token=UNK,
            no_pretokenization=True,
        )

    def __call__(self, texts):
        return self.tokenize(texts)

    def tokenize(self, texts):
        """Ids `[batch, (pieces)]` int32, ragged, of texts `[batch]`."""
        return self._join(texts, lambda texts: (self._plain.tokenize(texts),), self._tokenize_any)[0]

    def tokenize_with_offsets(self, texts):
        """`(ids, starts, ends)`, each `[batch, (pieces)]` int32, ragged, of texts `[batch]`.

        `text[start:end]` is where a piece comes from, in code points of the text as given, which is
        `bytes.decode("utf-8", "ignore")` where the bytes are not all UTF-8.
        """
        return self._join(texts, self._plain.tokenize_with_offsets, self._tokenize_any_with_offsets)

    def normalize(self, texts):
        """Texts `[batch]` as their words, cleaned, with one space between them."""
        return self._basic.normalize(_string_batch(texts))

    def _join(self, texts, tokenize_plain, tokenize_any):
        """The columns of all texts in their order, those of plain texts by the one function, others by the other."""
        texts = _string_batch(texts)
        is_plain = self._plain.accepts(texts)
        plain_rows, other_rows = tf.where(is_plain)[:, 0], tf.where(~is_plain)[:, 0]
        parts = zip(tokenize_plain(tf.gather(texts, plain_rows)), tokenize_any(tf.gather(texts, other_rows)))
        place = tf.math.invert_permutation(tf.concat([plain_rows, other_rows], axis=0))
        return tuple(tf.gather(tf.concat(part, axis=0), place) for part in parts)

    def _tokenize_any(self, texts):
        words = self._basic(texts)
        return (_by_text(self._pieces_of_words(words), words),)

    def _tokenize_any_with_offsets(self, texts):
        words = self._basic(texts)
        pieces = self._pieces_of_words(words)
        ids = _by_text(pieces, words)
        # The pieces tile the characters of all words, so that their lengths, added up, are their places.
        lengths = tf.gather(self._piece_lengths, ids.values)
        # An [UNK] stands for a whole word. There are few, so their words are searched for, not those of all pieces.
        unknown = tf.where(ids.values == self.vocabulary.unk_id)
        unknown_words = tf.searchsorted(pieces.row_splits, unknown[:, 0], side="right") - 1
        lengths = tf.tensor_scatter_nd_update(lengths, unknown, tf.gather(_lengths(words), unknown_words))
        after = tf.cumsum(lengths)
        text_lengths = tf.cast(words.source_splits[1:] - words.source_splits[:-1], tf.int32)
        text_starts = row_offsets(text_lengths, ids.row_splits, tf.size(ids.values))
        starts = tf.gather(words.sources, after - lengths) - text_starts
        ends = tf.gather(words.sources, after - 1) + 1 - text_starts
        return ids, ids.with_values(starts), ids.with_values(ends)

    def _pieces_of_words(self, words):
        """Ids `[words, (pieces)]`; a word of too many characters goes in as one of too many bytes, which is [UNK]."""
        too_long = _lengths(words) > MAX_CHARACTERS_PER_WORD
        encoded = tf.cond(
            tf.reduce_any(too_long), lambda: tf.where(too_long, TOO_MANY_BYTES, words.words), lambda: words.words
        )
        return self._word_pieces.tokenize(encoded)


def _string_batch(texts):
    texts = tf.convert_to_tensor(texts, tf.string)
    if texts.shape.rank != 1:
        raise ValueError(f"texts: needs strings of shape [batch]. Received: shape {texts.shape}. Reshape them.")
    return texts


def _lengths(words):
    """Characters of each word: int32 `[words]`."""
    return tf.cast(words.character_splits[1:] - words.character_splits[:-1], tf.int32)


def _by_text(pieces, words):
    """Pieces `[words, (pieces)]` as `[batch, (pieces)]`."""
    return tf.RaggedTensor.from_row_splits(
        pieces.values, tf.gather(pieces.row_splits, words.row_splits), validate=False
    )
