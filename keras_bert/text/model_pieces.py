"""SentencePiece in the TensorFlow graph, with no normalization but the model's own."""

from typing import ClassVar

import tensorflow as tf

from keras_bert.core.files import StrPath
from keras_bert.text.characters import row_ids
from keras_bert.text.model_vocabulary import ModelVocabulary
from keras_bert.text.sentencepiece import SentencePieceModel, in_characters
from keras_bert.text.sentencepiece_vocabulary import has_charsmap
from keras_bert.text.standalone_tokenizer import SPACES
from keras_bert.text.tokenizers import Texts, Tokenizer, string_batch, traced_once


class ModelTokenizer(Tokenizer):
    """Splits texts into the pieces of a SentencePiece model, which normalizes them.

    Like the other tokenizers, it skips bytes that are not UTF-8, which the original rejects. Special tokens in a text,
    such as "</s>", are text.
    """

    _kind: ClassVar[type[ModelVocabulary]]  # Of its vocabulary.
    vocabulary: ModelVocabulary
    lower_case = False

    def __init__(self, vocab_file: StrPath | ModelVocabulary) -> None:
        """`vocab_file`: the path of a model's file or a tokenizer.json, or a vocabulary."""
        super().__init__()
        is_open = isinstance(vocab_file, ModelVocabulary)
        self.vocabulary = vocab_file if is_open else self._kind.read(vocab_file)  # type: ignore
        self._model = SentencePieceModel(self.vocabulary.model)
        self.resources = [self._model]
        self._spaces = tf.constant(list(map(ord, SPACES)), tf.int32)

    @traced_once
    def tokenize(self, texts: Texts) -> tf.RaggedTensor:
        """Ids `[batch, (pieces)]` int32 of texts `[batch]`."""
        texts = tf.strings.unicode_transcode(string_batch(texts), "UTF-8", "UTF-8", errors="ignore")
        return self.pieces(texts)

    @traced_once
    def tokenize_with_offsets(self, texts: Texts) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """`(ids, starts, ends)`, each `[batch, (pieces)]` int32, of texts `[batch]`; see `Tokenizer`.

        Offsets exclude a piece's leading space.
        """
        decoded = tf.strings.unicode_decode(string_batch(texts), "UTF-8", errors="ignore")
        texts = tf.ensure_shape(tf.strings.unicode_encode(decoded, "UTF-8"), [None])
        ids, starts, ends = self.pieces_with_offsets(texts)
        is_space = tf.reduce_any(decoded.values[:, tf.newaxis] == self._spaces, axis=1)
        first, last = in_characters(texts, decoded.values, is_space, ids, starts.values, ends.values)
        row_starts = tf.gather(tf.cast(decoded.row_splits, tf.int32), row_ids(ids.row_splits, tf.size(first)))
        return ids, ids.with_values(first - row_starts), ids.with_values(last - row_starts)

    def pieces(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """`tokenize` for texts in valid UTF-8."""
        return self.numbered(self._model.tokenize(self._spaced(texts)))

    def pieces_with_offsets(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Like `pieces`, with `(starts, ends)` in bytes."""
        ids, starts, ends = self._model.tokenize_with_offsets(self._spaced(texts))
        return self.numbered(ids), starts, ends

    def _spaced(self, texts: tf.Tensor) -> tf.Tensor:
        """For a model that does not normalize, puts blanks, of as many bytes, for all white space, as transformers."""
        if has_charsmap(self.vocabulary.model):
            return texts
        for size in (1, 2, 3):
            spaces = "".join(space for space in SPACES if len(space.encode()) == size)
            texts = tf.strings.regex_replace(texts, f"[{spaces}]", " " * size)
        return texts

    def numbered(self, ids: tf.RaggedTensor) -> tf.RaggedTensor:
        """Converts the model's ids to the vocabulary's."""
        return ids
