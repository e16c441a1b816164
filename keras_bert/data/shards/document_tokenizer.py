"""From the texts of documents to token ids, sentence by sentence, in this process or in several."""

from collections.abc import Callable, Sequence

import numpy as np

from keras_bert.data.shards.shard_format import token_dtype
from keras_bert.data.shards.tokenized_documents import TokenizedDocuments, offsets
from keras_bert.quiet import stderr_kept_back
from keras_bert.text.sentences import split_sentences
from keras_bert.text.vocabulary import Vocabulary


class DocumentTokenizer:
    """Splits documents into sentences and sentences into pieces.

    TensorFlow is imported at the first call, so that an object is cheap to send to another process.

    Args:
        vocabulary: the pieces.
        lower_case: as for `WordPieceTokenizer`.
        word_marks: `"jieba"` to mark Chinese words, or None.
    """

    def __init__(self, vocabulary: Vocabulary, lower_case: bool, word_marks: str | None = None):
        self.vocabulary = vocabulary
        self.lower_case = bool(lower_case)
        self.word_marks = word_marks
        self._tokenize: Callable | None = None

    def __call__(self, documents: Sequence[str]) -> TokenizedDocuments:
        """Tokenizes documents whose paragraphs are separated by blank lines."""
        if self._tokenize is None:
            self._tokenize = self._graph()
        sentences = [split_sentences(document) for document in documents]
        texts = [sentence for document in sentences for sentence in document]
        tokens, splits, starts = (array.numpy() for array in self._tokenize(texts))
        lengths = np.diff(splits)
        continuations = None
        if self.word_marks:
            from keras_bert.text.word_marks import continuation_marks

            continuations = continuation_marks(texts, tokens, lengths, starts, self.vocabulary)
        is_filled = lengths > 0
        document_splits = offsets([len(document) for document in sentences])
        filled = np.diff(offsets(is_filled)[document_splits])
        return TokenizedDocuments(
            tokens.astype(token_dtype(len(self.vocabulary))),
            lengths[is_filled].astype(np.int32),
            filled.astype(np.int32),
            (np.diff(document_splits) - filled).astype(np.int32),
            continuations,
        )

    def _graph(self) -> Callable:
        with stderr_kept_back():
            import tensorflow as tf

            from keras_bert.text.tokenizer import WordPieceTokenizer

            tokenizer = WordPieceTokenizer(self.vocabulary, self.lower_case)

            @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
            def tokenize(texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
                if not self.word_marks:
                    ids = tokenizer.tokenize(texts)
                    return ids.values, ids.row_splits, tf.zeros([0], tf.int32)
                ids, starts, _ = tokenizer.tokenize_with_offsets(texts)
                return ids.values, ids.row_splits, starts.values

            tokenize(tf.zeros([0], tf.string))
        return lambda texts: tokenize(tf.constant(texts, tf.string, [len(texts)]))
