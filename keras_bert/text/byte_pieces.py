"""Byte-level BPE in the TensorFlow graph: exactly the ids of GPT-2's original encoder, with offsets.

Source: encoder.py of openai/gpt-2. A regular expression over Unicode's classes splits a text into parts; within each,
merges join bytes, and then the results, in order.

TensorFlow's expressions cannot look ahead as this one does, but the classes of neighbouring characters show where a
part begins. A SentencePiece model of the BPE kind does the merges, with their ranks as scores. Such a model joins any
two neighbours that make up a piece, the original joins only listed pairs. The results are equal if the listed pairs
turn the bytes of every piece into that piece, as `ByteVocabulary` checks: any neighbours that make up a piece are then
on the way to it.
"""

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_bert.core.files import StrPath
from keras_bert.core.settings import checked
from keras_bert.text.byte_vocabulary import ByteVocabulary
from keras_bert.text.characters import PAGE_SIZE, row_ids, row_offsets
from keras_bert.text.sentencepiece import SentencePieceModel, character_bytes
from keras_bert.text.sentencepiece_vocabulary import bpe_model
from keras_bert.text.standalone_byte_tokenizer import FILE, SPACE
from keras_bert.text.tokenizers import Texts, Tokenizer, string_batch, traced_once

_LAST_OF_ASCII = 0x7F
_BLANK, _APOSTROPHE = ord(" "), ord("'")
# What follows the apostrophe in 's, 't, 'm, 'd, and in 're, 've, 'll.
_SHORT_ENDINGS = tuple(map(ord, "stmd"))
_LONG_ENDINGS = tuple(tuple(map(ord, ending)) for ending in ("re", "ve", "ll"))


def load_character_classes() -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """`(page_starts, pages)`: a code point's class is `pages[page_starts[code_point >> 8] + (code_point & 255)]`."""
    with np.load(FILE, allow_pickle=False) as arrays:
        return arrays["page_starts"].astype(np.int32), arrays["pages"].astype(np.int32)


class PartSplitter(tf.Module):
    """Splits texts into the parts that no merge crosses.

    They are what GPT-2's expression finds from left to right:

        's|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+
    """

    def __init__(self, vocabulary: ByteVocabulary | None = None) -> None:
        """With a vocabulary, also cuts parts where no piece could span the cut."""
        super().__init__()
        page_starts, pages = load_character_classes()
        self._page_starts, self._pages = tf.constant(page_starts), tf.constant(pages)
        self._is_joint = None if vocabulary is None else tf.constant(joints(vocabulary))

    def __call__(self, decoded: tf.RaggedTensor) -> tf.RaggedTensor:
        """Splits code points, int32 `[batch, (code points)]`, into strings `[batch, (parts)]`."""
        places = tf.where(self._begins(decoded.values, decoded.row_splits))[:, 0]
        splits = tf.concat([places, decoded.row_splits[-1:]], axis=0)
        code_points = tf.RaggedTensor.from_row_splits(decoded.values, splits, validate=False)
        parts = tf.ensure_shape(tf.strings.unicode_encode(code_points, "UTF-8"), [None])
        rows = tf.searchsorted(places, decoded.row_splits, out_type=tf.int64)
        return tf.RaggedTensor.from_row_splits(parts, rows, validate=False)

    def _begins(self, code_points: tf.Tensor, row_splits: tf.Tensor) -> tf.Tensor:
        """Whether each code point of texts with row splits `[batch + 1]` begins a part: bool `[code_points]`."""
        page = tf.gather(self._page_starts, tf.bitwise.right_shift(code_points, 8))
        classes = tf.gather(self._pages, page + (code_points & (PAGE_SIZE - 1)))
        ends = tf.ones_like(row_splits, tf.bool)
        begins_row = tf.scatter_nd(row_splits[:, tf.newaxis], ends, tf.shape(code_points, tf.int64) + 1)
        is_first, is_last = begins_row[:-1], begins_row[1:]
        is_space = tf.equal(classes, SPACE)
        changes = is_first | _after(tf.not_equal(classes[1:], classes[:-1]))
        # A blank belongs to the part after it; any other space just before a word is a part of its own.
        follows_blank = ~is_first & _after(tf.equal(code_points[:-1], _BLANK))
        precedes_word = ~is_last & _before(~is_space[1:])
        begins = tf.where(is_space, changes | precedes_word, changes & ~follows_blank)
        is_apostrophe = begins & tf.equal(code_points, _APOSTROPHE)
        begins = tf.cond(
            tf.reduce_any(is_apostrophe),
            lambda: _with_contractions(begins, is_apostrophe, code_points, is_last),
            lambda: begins,
        )
        return begins if self._is_joint is None else self._with_cuts(begins, code_points)

    def _with_cuts(self, begins: tf.Tensor, code_points: tf.Tensor) -> tf.Tensor:
        """Also cuts before non-ASCII characters where no piece spans the cut, as long runs of ideographs are slow."""
        places = tf.where(code_points > _LAST_OF_ASCII)
        first = _first_byte(tf.gather_nd(code_points, places))
        last = _last_byte(tf.gather_nd(code_points, tf.maximum(places - 1, 0)))
        places = tf.boolean_mask(places, ~tf.gather_nd(self._is_joint, tf.stack([last, first], axis=1)))
        return tf.tensor_scatter_nd_update(begins, places, tf.ones_like(places[:, 0], tf.bool))


def joints(vocabulary: ByteVocabulary) -> npt.NDArray[np.bool_]:
    """Whether some piece contains byte i followed by byte j: bool `[256, 256]`. BPE never joins any other two."""
    found = np.zeros((256, 256), np.bool_)
    for content in vocabulary.bytes_of:
        values = np.frombuffer(content, np.uint8)
        found[values[:-1], values[1:]] = True
    return found


def _first_byte(code_points: tf.Tensor) -> tf.Tensor:
    """The first UTF-8 byte of each code point, all of them beyond ASCII."""
    of_three = tf.where(code_points > 0xFFFF, 0xF0 | _high(code_points, 18), 0xE0 | _high(code_points, 12))
    return tf.where(code_points > 0x7FF, of_three, 0xC0 | _high(code_points, 6))


def _last_byte(code_points: tf.Tensor) -> tf.Tensor:
    return tf.where(code_points > _LAST_OF_ASCII, 0x80 | (code_points & 0x3F), code_points)


def _high(code_points: tf.Tensor, shift: int) -> tf.Tensor:
    return tf.bitwise.right_shift(code_points, shift)


def _after(of_pairs: tf.Tensor) -> tf.Tensor:
    """Flags of neighbouring pairs as flags of their second characters; false for the first character."""
    return tf.pad(of_pairs, [[1, 0]])


def _before(of_pairs: tf.Tensor) -> tf.Tensor:
    """Flags of neighbouring pairs as flags of their first characters; false for the last character."""
    return tf.pad(of_pairs, [[0, 1]])


def _with_contractions(
    begins: tf.Tensor, is_apostrophe: tf.Tensor, code_points: tf.Tensor, is_last: tf.Tensor
) -> tf.Tensor:
    """Makes each apostrophe and the ending after it one part."""
    places = tf.where(is_apostrophe)[:, 0]
    # The two characters after each, -1 beyond the end of its text.
    code_points, is_last = tf.pad(code_points, [[0, 2]], constant_values=-1), tf.pad(is_last, [[0, 2]])
    first = tf.where(tf.gather(is_last, places), -1, tf.gather(code_points, places + 1))
    ends = tf.gather(is_last, places) | tf.gather(is_last, places + 1)
    second = tf.where(ends, -1, tf.gather(code_points, places + 2))
    is_short = tf.reduce_any([tf.equal(first, ending) for ending in _SHORT_ENDINGS], axis=0)
    is_long = tf.reduce_any([tf.equal(first, one) & tf.equal(second, two) for one, two in _LONG_ENDINGS], axis=0)
    found = tf.where(is_short | is_long)
    places = tf.gather_nd(places, found)[:, tf.newaxis]
    lengths = tf.where(tf.gather_nd(is_short, found), 2, 3)
    begins = tf.pad(begins, [[0, 1]])  # For an ending at the end of the last text.
    begins = tf.tensor_scatter_nd_update(begins, places + 1, tf.zeros_like(lengths, tf.bool))
    after = places + tf.cast(lengths, tf.int64)[:, tf.newaxis]
    return tf.tensor_scatter_nd_update(begins, after, tf.ones_like(lengths, tf.bool))[:-1]


class BytePieceTokenizer(Tokenizer):
    """Splits texts into the pieces of byte-level BPE, as GPT-2 and RoBERTa do.

    Like the other tokenizers, it skips bytes that are not UTF-8, which the original rejects. Special tokens in a text,
    such as "<mask>", are text.

    Attributes:
        prefix_space: whether a text is read as if a space came before it, unless it begins with one.
    """

    vocabulary: ByteVocabulary
    lower_case = False

    @checked
    def __init__(self, vocab_file: StrPath | ByteVocabulary, prefix_space: bool = False) -> None:
        """`vocab_file`: the path of a vocab.json or a tokenizer.json, or a vocabulary."""
        super().__init__()
        is_open = isinstance(vocab_file, ByteVocabulary)
        self.vocabulary = vocab_file if is_open else ByteVocabulary.from_file(vocab_file)  # type: ignore
        self.prefix_space = prefix_space
        self._splitter = PartSplitter(self.vocabulary)
        # Bytes as Latin-1, which TensorFlow can transcode.
        pieces = [content.decode("latin-1") for content in self.vocabulary.bytes_of]
        rank_of = {first + second: rank for rank, (first, second) in enumerate(self.vocabulary.merges)}
        ranks = [rank_of.get(token, 0) for token in self.vocabulary.tokens]
        self._model = SentencePieceModel(bpe_model(pieces, ranks))
        self.resources = [self._model]
        self._lengths = tf.constant([len(content) for content in self.vocabulary.bytes_of], tf.int32)
        self._begins_with_blank = tf.constant([content[:1] == b" " for content in self.vocabulary.bytes_of])

    @traced_once
    def tokenize(self, texts: Texts) -> tf.RaggedTensor:
        """Ids `[batch, (pieces)]` int32 of texts `[batch]`."""
        return self._tokenize(self._decode(texts)[0])

    @traced_once
    def tokenize_with_offsets(self, texts: Texts) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """`(ids, starts, ends)`, each `[batch, (pieces)]` int32, of texts `[batch]`; see `Tokenizer`.

        Offsets exclude a piece's leading blank. A piece of some bytes of a character has that character's offsets.
        """
        decoded, added = self._decode(texts)
        ids = self._tokenize(decoded)
        # The pieces cover all bytes of all texts in order.
        lengths = tf.gather(self._lengths, ids.values)
        ends = tf.cumsum(lengths)
        starts = ends - lengths + tf.cast(tf.gather(self._begins_with_blank, ids.values), tf.int32)
        after = tf.cumsum(character_bytes(decoded.values))
        first = tf.searchsorted(after, starts, side="right")
        last = tf.where(starts < ends, tf.searchsorted(after, ends - 1, side="right") + 1, first)
        text_starts = row_offsets(tf.cast(decoded.row_lengths(), tf.int32), ids.row_splits, tf.size(first))
        first, last = first - text_starts, last - text_starts
        if added is not None:
            added = tf.gather(added, row_ids(ids.row_splits, tf.size(first)))
            first, last = tf.maximum(first - added, 0), tf.maximum(last - added, 0)
        return ids, ids.with_values(first), ids.with_values(last)

    def _decode(self, texts: Texts) -> tuple[tf.RaggedTensor, tf.Tensor | None]:
        """`(code points [batch, (code points)], 1 for each text that got a space before it [batch])`, int32."""
        texts = string_batch(texts)
        if not self.prefix_space:
            return tf.strings.unicode_decode(texts, "UTF-8", errors="ignore"), None
        decoded = tf.strings.unicode_decode(tf.strings.join([" ", texts]), "UTF-8", errors="ignore")
        starts, is_empty = decoded.row_splits[:-1], tf.equal(decoded.row_lengths(), 1)
        # After the space of an empty text comes the next text or the padding.
        after = tf.gather(tf.pad(decoded.values, [[0, 1]]), starts + 1)
        is_needless = is_empty | tf.equal(after, _BLANK)

        def without() -> tf.RaggedTensor:
            keeps = tf.tensor_scatter_nd_update(
                tf.ones_like(decoded.values, tf.bool), starts[:, tf.newaxis], ~is_needless
            )
            return tf.ragged.boolean_mask(decoded, decoded.with_values(keeps))

        decoded = tf.cond(tf.reduce_any(is_needless), without, lambda: decoded)
        return decoded, tf.cast(~is_needless, tf.int32)

    def _tokenize(self, decoded: tf.RaggedTensor) -> tf.RaggedTensor:
        parts = self._splitter(decoded)
        # Most parts occur more than once in a batch.
        different, number = tf.unique(parts.values)
        pieces = self._model.tokenize(tf.strings.unicode_transcode(different, "ISO-8859-1", "UTF-8"))
        ends = tf.concat([[0], tf.cumsum(tf.gather(pieces.row_lengths(), number))], axis=0)
        # From the index of a piece in the batch to its index among the pieces of the different parts.
        shifts = tf.gather(pieces.row_splits, number) - ends[:-1]
        places = tf.range(ends[-1]) + tf.gather(shifts, row_ids(ends, ends[-1]))
        rows = tf.gather(ends, parts.row_splits)
        return tf.RaggedTensor.from_row_splits(tf.gather(pieces.values, places), rows, validate=False)
