"""What every tokenizer does, and the one that belongs to a vocabulary."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from keras_bert.text.tokenizer_files import TokenizerSettings
from keras_bert.text.vocabulary import Vocabulary, named_class

Texts: TypeAlias = "tf.Tensor | Sequence[str] | Sequence[bytes]"


class Tokenizer(tf.Module):
    """Splits texts into the pieces of a vocabulary, such as a `WordPieceTokenizer` or a `SentencePieceTokenizer`.

    Works eagerly, in `tf.function`, in `tf.data` (parallel maps too) and in a self-contained SavedModel. Special tokens
    are not added, and `[MASK]` in a text is text; the tokens in `vocabulary.added` are matched whole.

    Attributes:
        prefix_space: see `TokenizerSettings`, whose default those have that do not know it.
        resources: what a SavedModel has to hold besides the graph.
    """

    vocabulary: Vocabulary
    lower_case: bool
    prefix_space: bool = True
    resources: Sequence[Any] = ()

    def __call__(self, texts: Texts) -> tf.RaggedTensor:
        """Same as `tokenize`."""
        return self.tokenize(texts)

    def tokenize(self, texts: Texts) -> tf.RaggedTensor:
        """Ids `[batch, (pieces)]` int32 of texts `[batch]`."""
        raise NotImplementedError

    def tokenize_with_offsets(self, texts: Texts) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """`(ids, starts, ends)`, each `[batch, (pieces)]` int32, of texts `[batch]`.

        A piece comes from `text[start:end]`, in code points of the original text; if that is not valid UTF-8, of
        `bytes.decode("utf-8", "ignore")`.
        """
        raise NotImplementedError


def make_tokenizer(vocabulary: Vocabulary, settings: TokenizerSettings | None = None) -> Tokenizer:
    """The tokenizer of a vocabulary, with those of the settings that it has."""
    values = vars(settings or TokenizerSettings())
    own = {name: values[name] for name in vocabulary.tokenizer_settings}
    return named_class(vocabulary.tokenizer)(vocabulary, **own)


# The sources of a run share a tokenizer, and each has it in several graphs.
@functools.lru_cache(maxsize=2)
def traced_tokenizer(tokenizer: Tokenizer) -> Callable[[tf.Tensor], tf.RaggedTensor]:
    """`tokenizer.tokenize` for texts `[batch]`, traced once for all graphs that call it, a quarter of a second each."""
    return tf.function(tokenizer.tokenize, [tf.TensorSpec([None], tf.string)], autograph=False)


def string_batch(texts: Texts) -> tf.Tensor:
    """Texts as a string tensor `[batch]`. Raises `ValueError` for another shape."""
    texts = tf.convert_to_tensor(texts, tf.string)
    if texts.shape.rank != 1:
        raise ValueError(f"texts: needs strings of shape [batch]. Received: shape {texts.shape}. Reshape them.")
    return texts
