"""WordPiece in the TensorFlow graph: exactly the ids of Google's original tokenization, with offsets.

Source: tokenization.py of google-research/bert (BasicTokenizer, then WordpieceTokenizer).
"""

from collections.abc import Callable

import tensorflow as tf
import tensorflow_text as text

from keras_bert.files import StrPath
from keras_bert.text.basic_tokenizer import BasicTokenizer, Words
from keras_bert.text.characters import row_offsets
from keras_bert.text.plain_tokenizer import PlainTokenizer
from keras_bert.text.tokenizers import Texts, Tokenizer, string_batch
from keras_bert.text.vocabulary import CONTINUATION, UNK, Vocabulary

MAX_CHARACTERS_PER_WORD = 200  # max_input_chars_per_word in tokenization.py; a longer word is one [UNK]
MAX_BYTES_PER_WORD = 4 * MAX_CHARACTERS_PER_WORD
TOO_MANY_BYTES = b"x" * (MAX_BYTES_PER_WORD + 1)


class WordPieceTokenizer(Tokenizer):
    """Splits texts into the pieces of a vocabulary (paper, section 3, "Input/Output Representations").

    Works eagerly, in `tf.function`, in `tf.data` (parallel maps too) and in a self-contained SavedModel. Special tokens
    are not added, and `[MASK]` in a text becomes the words `[`, `mask`, `]`, as in the original.

    Attributes:
        vocabulary: the vocabulary.
        lower_case: whether texts are lower-cased and, by default, lose their accents; must match the vocabulary.
        strip_accents: whether accents are removed; None: only if texts are lower-cased.
        split_chinese: whether every ideograph is a word of its own.
    """

    def __init__(
        self,
        vocab_file: StrPath | Vocabulary,
        lower_case: bool = True,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
    ) -> None:
        """`vocab_file`: the path of a `vocab.txt` or a `tokenizer.json`, or a vocabulary."""
        super().__init__()
        self.vocabulary = vocab_file if isinstance(vocab_file, Vocabulary) else Vocabulary.from_file(vocab_file)
        self.lower_case, self.strip_accents, self.split_chinese = lower_case, strip_accents, split_chinese
        keeps_letters = not lower_case and not strip_accents
        self._plain = PlainTokenizer(self.vocabulary, lower_case, keeps_letters, MAX_CHARACTERS_PER_WORD)
        self._basic = BasicTokenizer(lower_case, strip_accents, split_chinese)
        piece_lengths = [len(token.removeprefix(CONTINUATION)) for token in self.vocabulary.tokens]
        self._piece_lengths = tf.constant(piece_lengths, tf.int32)
        self._word_pieces = text.FastWordpieceTokenizer(
            self.vocabulary.word_pieces(),
            suffix_indicator=CONTINUATION,
            max_bytes_per_word=MAX_BYTES_PER_WORD,
            token_out_type=tf.int32,
            unknown_token=UNK,
            no_pretokenization=True,
        )

    def tokenize(self, texts: Texts) -> tf.RaggedTensor:
        """Ids `[batch, (pieces)]` int32 of texts `[batch]`."""
        return self._join(texts, lambda texts: (self._plain.tokenize(texts),), self._tokenize_any)[0]

    def tokenize_with_offsets(self, texts: Texts) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """`(ids, starts, ends)`, each `[batch, (pieces)]` int32, of texts `[batch]`.

        A piece comes from `text[start:end]`, in code points of the original text; if that is not valid UTF-8, of
        `bytes.decode("utf-8", "ignore")`.
        """
        return self._join(texts, self._plain.tokenize_with_offsets, self._tokenize_any_with_offsets)

    def normalize(self, texts: Texts) -> tf.Tensor:
        """Texts `[batch]` as cleaned words with one space between them."""
        return self._basic.normalize(string_batch(texts))

    def _join(
        self,
        texts: Texts,
        tokenize_plain: Callable[[tf.Tensor], tuple[tf.RaggedTensor, ...]],
        tokenize_any: Callable[[tf.Tensor], tuple[tf.RaggedTensor, ...]],
    ) -> tuple[tf.RaggedTensor, ...]:
        """The columns of all texts in order: plain texts by the first function, the others by the second."""
        texts = string_batch(texts)
        is_plain = self._plain.accepts(texts)
        plain_rows, other_rows = tf.where(is_plain)[:, 0], tf.where(~is_plain)[:, 0]
        parts = zip(tokenize_plain(tf.gather(texts, plain_rows)), tokenize_any(tf.gather(texts, other_rows)))
        place = tf.math.invert_permutation(tf.concat([plain_rows, other_rows], axis=0))
        return tuple(tf.gather(tf.concat(part, axis=0), place) for part in parts)

    def _tokenize_any(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor]:
        words = self._basic(texts)
        return (_by_text(self._pieces_of_words(words), words),)

    def _tokenize_any_with_offsets(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        words = self._basic(texts)
        pieces = self._pieces_of_words(words)
        ids = _by_text(pieces, words)
        # The pieces tile the characters of all words, so cumulative lengths are offsets.
        lengths = tf.gather(self._piece_lengths, ids.values)
        # An [UNK] stands for a whole word. They are few, so look up the word of each [UNK], not of every piece.
        unknown = tf.where(ids.values == self.vocabulary.unk_id)
        unknown_words = tf.searchsorted(pieces.row_splits, unknown[:, 0], side="right") - 1
        lengths = tf.tensor_scatter_nd_update(lengths, unknown, tf.gather(_lengths(words), unknown_words))
        after = tf.cumsum(lengths)
        text_lengths = tf.cast(words.source_splits[1:] - words.source_splits[:-1], tf.int32)
        text_starts = row_offsets(text_lengths, ids.row_splits, tf.size(ids.values))
        starts = tf.gather(words.sources, after - lengths) - text_starts
        ends = tf.gather(words.sources, after - 1) + 1 - text_starts
        return ids, ids.with_values(starts), ids.with_values(ends)

    def _pieces_of_words(self, words: Words) -> tf.RaggedTensor:
        """Ids `[words, (pieces)]`; a word with too many characters is replaced by one with too many bytes: an [UNK]."""
        too_long = _lengths(words) > MAX_CHARACTERS_PER_WORD
        encoded = tf.cond(
            tf.reduce_any(too_long), lambda: tf.where(too_long, TOO_MANY_BYTES, words.words), lambda: words.words
        )
        return self._word_pieces.tokenize(encoded)


def _lengths(words: Words) -> tf.Tensor:
    """The length of each word in characters: int32 `[words]`."""
    return tf.cast(words.character_splits[1:] - words.character_splits[:-1], tf.int32)


def _by_text(pieces: tf.RaggedTensor, words: Words) -> tf.RaggedTensor:
    """Regroups pieces `[words, (pieces)]` as `[batch, (pieces)]`."""
    return tf.RaggedTensor.from_row_splits(
        pieces.values, tf.gather(pieces.row_splits, words.row_splits), validate=False
    )
