"""Base class of the tokenizers, and the choice of one for a vocabulary."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import tensorflow as tf

from keras_bert.core.imports import named_class
from keras_bert.text.tokenizer_files import TokenizerSettings
from keras_bert.text.vocabulary import Vocabulary

Texts: TypeAlias = "tf.Tensor | Sequence[str] | Sequence[bytes]"


_Method = TypeVar("_Method", bound=Callable[..., Any])


def traced_once(method: _Method) -> _Method:
    """Decorates a tokenizer's method of texts `[batch]`: its graph is traced once, and all other graphs call it.

    Tracing takes a quarter of a second for each signature, each text of a pair and each source of a run. Eager calls
    need none.
    """

    @functools.wraps(method)
    def tokenize(tokenizer: "Tokenizer", texts: Texts) -> Any:
        if tf.executing_eagerly():
            return method(tokenizer, texts)
        graphs = traced_graphs(tokenizer)
        if method.__name__ not in graphs:
            bound = functools.partial(method, tokenizer)
            graphs[method.__name__] = tf.function(bound, [tf.TensorSpec([None], tf.string)], autograph=False)
        return graphs[method.__name__](string_batch(texts))

    return cast(_Method, tokenize)


def traced_graphs(tokenizer: "Tokenizer") -> dict[str, Callable]:
    """The traced graphs of a tokenizer by method, kept where TensorFlow does not track them for a SavedModel."""
    return tokenizer.__dict__.setdefault("_graphs", {})


class Tokenizer(tf.Module):
    """Splits texts into the pieces of a vocabulary, such as a `WordPieceTokenizer` or a `SentencePieceTokenizer`.

    Works eagerly, in `tf.function`, in `tf.data` (parallel maps too) and in a self-contained SavedModel. Special tokens
    are not added, and `[MASK]` in a text is text; the tokens in `vocabulary.added` are matched whole.

    Attributes:
        prefix_space: see `TokenizerSettings`; its default in tokenizers without this setting.
        resources: what a SavedModel must contain besides the graph.
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
    """The tokenizer of a vocabulary, with the settings that apply to it."""
    values = vars(settings or TokenizerSettings())
    own = {name: values[name] for name in vocabulary.tokenizer_settings}
    return named_class(vocabulary.tokenizer)(vocabulary, **own)


def string_batch(texts: Texts) -> tf.Tensor:
    """Texts as a string tensor `[batch]`. Raises `ValueError` for another shape."""
    texts = tf.convert_to_tensor(texts, tf.string)
    if texts.shape.rank != 1:
        raise ValueError(f"texts: needs strings of shape [batch]. Received: shape {texts.shape}. Reshape them.")
    return texts
