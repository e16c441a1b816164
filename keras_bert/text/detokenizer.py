"""Tokens back to texts, in the graph."""

from typing import Any

import tensorflow as tf

from keras_bert.text.tokenizers import Tokenizer


class Detokenizer(tf.Module):
    """Turns tokens into text. Works eagerly, in `tf.function` and in a self-contained SavedModel.

    Args:
        tokenizer: the tokenizer of the tokens; if it has `prefix_space`, a text's leading blank is removed.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self._spellings = tf.constant(tokenizer.vocabulary.spellings())
        self._begins_with_blank = tokenizer.prefix_space

    def __call__(self, ids: tf.Tensor) -> tf.Tensor:
        """Strings [...] of ids int32 [..., tokens]: UTF-8, with U+FFFD for invalid bytes."""
        joined = tf.strings.reduce_join(tf.gather(self._spellings, ids), axis=-1)
        texts = tf.strings.unicode_transcode(joined, "UTF-8", "UTF-8", errors="replace")
        return tf.strings.regex_replace(texts, "^ ", "") if self._begins_with_blank else texts

    def texts(self, ids: Any) -> list[str]:
        """The texts of an array of ids, int32 [texts, tokens]."""
        return [text.decode("utf-8") for text in self(tf.constant(ids, tf.int32)).numpy()]
