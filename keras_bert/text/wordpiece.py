"""WordPiece in the TensorFlow graph: exactly the ids of Google's original tokenization, with offsets.

Source: tokenization.py of google-research/bert (BasicTokenizer, then WordpieceTokenizer).
"""

import functools
from collections.abc import Callable

import numpy as np
import tensorflow as tf
import tensorflow_text as text
from tensorflow_text.core.pybinds import pywrap_fast_wordpiece_tokenizer_model_builder

from keras_bert.core.files import StrPath
from keras_bert.core.settings import Positive, checked
from keras_bert.text.basic_tokenizer import BasicTokenizer, TokenFinder, Words
from keras_bert.text.characters import row_offsets
from keras_bert.text.standalone_tokenizer import MAX_CHARACTERS_PER_WORD, StandaloneTokenizer
from keras_bert.text.tokenizers import Texts, Tokenizer, string_batch, traced_once
from keras_bert.text.vocabulary import CONTINUATION, UNK, Vocabulary

# Characters that the original leaves unchanged except for the case of ASCII, and that every tensorflow-text, whatever
# its Unicode version, classifies alike as punctuation or not. From U+0100 on, only letters long in Unicode.
_PRINTABLE_ASCII, _PUNCTUATION = r"!-~", r"\x{2010}-\x{2027}"
_LETTERS = r"\x{C0}-\x{24F}\x{391}-\x{3A1}\x{3A3}-\x{3CE}\x{400}-\x{481}"  # Latin, Greek, Cyrillic.
_SPACES = r"\t\n\r "


class PlainTokenizer(tf.Module):
    """Splits plain texts, as `accepts` defines them, into pieces.

    In plain texts the original changes at most the case of ASCII letters, and tensorflow-text splits them at the same
    places. Neither holds for other texts: tensorflow-text does not delete or decompose what the original does, its
    Unicode is newer than the character table's, and it measures words in bytes.
    """

    def __init__(
        self, vocabulary: Vocabulary, lower_case: bool, keeps_letters: bool, max_characters_per_word: int
    ) -> None:
        """`keeps_letters`: whether letters beyond ASCII keep their accents and case."""
        super().__init__()
        self._lower_case = lower_case
        characters = _PRINTABLE_ASCII + _PUNCTUATION + (_LETTERS if keeps_letters else "")
        word = f"[{characters}]{{0,{min(max_characters_per_word, 1000)}}}"  # RE2 allows no more repetitions.
        self._plain = f"(?:{word}[{_SPACES}])*{word}"
        self._pieces = _piece_finder(vocabulary, max_characters_per_word)

    def accepts(self, texts: tf.Tensor) -> tf.Tensor:
        """Which of texts `[batch]` are plain: bool `[batch]`."""
        return tf.strings.regex_full_match(texts, self._plain)

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Ids `[batch, (pieces)]` int32 of texts `[batch]`."""
        return self._tokenize(texts)[0]

    def tokenize_with_offsets(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """`(ids, starts, ends)`, each `[batch, (pieces)]` int32, of texts `[batch]`."""
        ids, starts, ends = self._tokenize(texts)
        text_bytes = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8)
        spans = (tf.cast(starts.values, tf.int32), tf.cast(ends.values, tf.int32))
        spans = tf.cond(
            tf.reduce_all(text_bytes < 0x80), lambda: spans, lambda: _in_code_points(spans, texts, text_bytes, ids)
        )
        return ids, *(ids.with_values(values) for values in spans)

    def _tokenize(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        return self._pieces.tokenize_with_offsets(tf.strings.lower(texts) if self._lower_case else texts)


def _in_code_points(
    spans: tuple[tf.Tensor, tf.Tensor], texts: tf.Tensor, text_bytes: tf.Tensor, ids: tf.RaggedTensor
) -> tuple[tf.Tensor, ...]:
    """Converts offsets in the bytes of each text to code points."""
    begins_code_point = tf.cast(text_bytes & 0xC0 != 0x80, tf.int32)
    code_points_before = tf.concat([[0], tf.cumsum(begins_code_point)], axis=0)
    pieces = tf.size(ids.values)
    in_bytes = row_offsets(tf.strings.length(texts), ids.row_splits, pieces)
    in_code_points = row_offsets(tf.strings.length(texts, "UTF8_CHAR"), ids.row_splits, pieces)
    return tuple(tf.gather(code_points_before, places + in_bytes) - in_code_points for places in spans)


def _piece_finder(
    vocabulary: Vocabulary, max_characters_per_word: int, no_pretokenization: bool = False
) -> text.FastWordpieceTokenizer:
    """Splits plain texts or, with `no_pretokenization`, words."""
    trie = _trie(tuple(vocabulary.word_pieces()), 4 * max_characters_per_word, no_pretokenization)
    return text.FastWordpieceTokenizer(token_out_type=tf.int32, model_buffer=tf.constant(trie))


# A trie takes a tenth of a second even for a few pieces, and a command opens a vocabulary several times.
@functools.lru_cache(maxsize=4)
def _trie(pieces: tuple[str, ...], max_bytes_per_word: int, no_pretokenization: bool) -> np.ndarray:
    """The buffer in which tensorflow-text looks up pieces: uint8 `[bytes]`."""
    trie = pywrap_fast_wordpiece_tokenizer_model_builder.build_fast_wordpiece_model(
        pieces, max_bytes_per_word, CONTINUATION, UNK, no_pretokenization, False
    )
    return np.frombuffer(trie, np.uint8)


_STAND_IN = b"-"  # One piece, or one [UNK], in any vocabulary.


class WordPieceTokenizer(Tokenizer):
    """Splits texts into the pieces of a vocabulary (paper, section 3, "Input/Output Representations").

    Works eagerly, in `tf.function`, in `tf.data` (parallel maps too) and in a self-contained SavedModel. Special tokens
    are not added, and `[MASK]` in a text becomes the words `[`, `mask`, `]`, as in the original. Only the tokens that a
    vocabulary was given later (`vocabulary.added`) are matched whole, as in Hugging Face's tokenizers.

    Attributes:
        lower_case: whether texts are lower-cased and, by default, lose their accents; must match the vocabulary.
        strip_accents: whether accents are removed; None: only if texts are lower-cased.
        split_chinese: whether every ideograph is a word of its own.
        max_characters_per_word: a longer word is one [UNK].

    Example:
        vocabulary = keras_bert.Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "##s"])
        keras_bert.WordPieceTokenizer(vocabulary)(["Cats"]).to_list()      # [[5, 6]]
    """

    @checked
    def __init__(
        self,
        vocab_file: StrPath | Vocabulary,
        lower_case: bool = True,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
        max_characters_per_word: Positive[int] = MAX_CHARACTERS_PER_WORD,
    ) -> None:
        """`vocab_file`: the path of a `vocab.txt` or a `tokenizer.json`, or a vocabulary."""
        super().__init__()
        self.vocabulary = vocab_file if isinstance(vocab_file, Vocabulary) else Vocabulary.read(vocab_file)
        self.lower_case, self.strip_accents, self.split_chinese = lower_case, strip_accents, split_chinese
        self.max_characters_per_word = max_characters_per_word
        keeps_letters = not lower_case and not strip_accents
        self._plain = PlainTokenizer(self.vocabulary, lower_case, keeps_letters, max_characters_per_word)
        self._basic = BasicTokenizer(lower_case, strip_accents, split_chinese)
        piece_lengths = [len(token.removeprefix(CONTINUATION)) for token in self.vocabulary.tokens]
        self._piece_lengths = tf.constant(piece_lengths, tf.int32)
        self._word_pieces = _piece_finder(self.vocabulary, max_characters_per_word, no_pretokenization=True)
        self._too_many_bytes = b"x" * (4 * max_characters_per_word + 1)
        self._as_given, self._normalized = self._finders()

    @traced_once
    def tokenize(self, texts: Texts) -> tf.RaggedTensor:
        """Ids `[batch, (pieces)]` int32 of texts `[batch]`."""
        return self._join(texts, lambda texts: (self._plain.tokenize(texts),), self._tokenize_any)[0]

    @traced_once
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
        if self._as_given is None:
            return self._columns(texts, tokenize_plain, tokenize_any)
        decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
        found = self._as_given(decoded.values, decoded.row_splits)
        is_token, splits = found.ids >= 0, tf.cast(found.splits, tf.int64)
        parts = tf.RaggedTensor.from_row_splits(decoded.values, splits, validate=False)
        parts = tf.where(is_token, _STAND_IN, tf.ensure_shape(tf.strings.unicode_encode(parts, "UTF-8"), [None]))
        ids, *spans = self._columns(parts, tokenize_plain, tokenize_any)
        places = tf.gather(ids.row_splits, tf.where(is_token))
        row_splits = tf.gather(ids.row_splits, found.row_splits)
        values = [tf.tensor_scatter_nd_update(ids.values, places, found.ids[is_token])]
        if spans:
            starts, ends = (column.values for column in spans)
            lengths = found.splits[1:] - found.splits[:-1]
            ends = tf.tensor_scatter_nd_update(ends, places, lengths[is_token])
            text_lengths = tf.cast(decoded.row_lengths(), tf.int32)
            offsets = row_offsets(lengths, ids.row_splits, tf.size(starts))
            offsets -= row_offsets(text_lengths, row_splits, tf.size(starts))
            values += [starts + offsets, ends + offsets]
        return tuple(tf.RaggedTensor.from_row_splits(column, row_splits, validate=False) for column in values)

    def _columns(
        self,
        texts: tf.Tensor,
        tokenize_plain: Callable[[tf.Tensor], tuple[tf.RaggedTensor, ...]],
        tokenize_any: Callable[[tf.Tensor], tuple[tf.RaggedTensor, ...]],
    ) -> tuple[tf.RaggedTensor, ...]:
        """Like `_join`, for texts without tokens that are matched as given."""
        is_plain = self._plain.accepts(texts)
        if self._normalized is not None:
            is_plain &= ~self._normalized.found_in(tf.strings.lower(texts) if self.lower_case else texts)
        plain_rows, other_rows = tf.where(is_plain)[:, 0], tf.where(~is_plain)[:, 0]
        parts = zip(tokenize_plain(tf.gather(texts, plain_rows)), tokenize_any(tf.gather(texts, other_rows)))
        place = tf.math.invert_permutation(tf.concat([plain_rows, other_rows], axis=0))
        return tuple(tf.gather(tf.concat(part, axis=0), place) for part in parts)

    def _tokenize_any(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor]:
        words = self._basic(texts, self._normalized)
        return (_by_text(_with_added(self._pieces_of_words(words), words), words),)

    def _tokenize_any_with_offsets(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        words = self._basic(texts, self._normalized)
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
        found = _with_added(pieces, words).values
        return ids.with_values(found), ids.with_values(starts), ids.with_values(ends)

    def _pieces_of_words(self, words: Words) -> tf.RaggedTensor:
        """Ids `[words, (pieces)]`; a word that is too long or an added token is one [UNK]."""
        is_unknown = _lengths(words) > self.max_characters_per_word
        if words.added is not None:
            is_unknown |= words.added >= 0
        # A word with too many bytes becomes an [UNK].
        encoded = tf.cond(
            tf.reduce_any(is_unknown),
            lambda: tf.where(is_unknown, self._too_many_bytes, words.words),
            lambda: words.words,
        )
        return self._word_pieces.tokenize(encoded)

    def _finders(self) -> tuple[TokenFinder | None, TokenFinder | None]:
        """The finders of added tokens in texts as given and in normalized texts; None for either without tokens."""
        added = self.vocabulary.added
        if not added:
            return None, None
        plain = StandaloneTokenizer(
            self.vocabulary.tokens, self.lower_case, self.strip_accents, self.split_chinese, added=added
        )
        found = (plain.tokens_as_given.tokens, plain.tokens_normalized.tokens)
        return tuple(TokenFinder(tokens) if tokens else None for tokens in found)  # type: ignore[return-value]


def _with_added(pieces: tf.RaggedTensor, words: Words) -> tf.RaggedTensor:
    """Pieces `[words, (pieces)]` with the ids of added tokens, each of which is one [UNK] so far."""
    if words.added is None:
        return pieces
    is_added = words.added >= 0
    places = tf.gather(pieces.row_splits, tf.where(is_added))
    return pieces.with_values(tf.tensor_scatter_nd_update(pieces.values, places, words.added[is_added]))


def _lengths(words: Words) -> tf.Tensor:
    """The length of each word in characters: int32 `[words]`."""
    return tf.cast(words.character_splits[1:] - words.character_splits[:-1], tf.int32)


def _by_text(pieces: tf.RaggedTensor, words: Words) -> tf.RaggedTensor:
    """Regroups pieces `[words, (pieces)]` as `[batch, (pieces)]`."""
    return tf.RaggedTensor.from_row_splits(
        pieces.values, tf.gather(pieces.row_splits, words.row_splits), validate=False
    )
