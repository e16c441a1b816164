"""A model's inputs and outputs in Python: checks texts, turns pieces into rows, and checks that outputs are finite."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_bert.core.errors import UserError
from keras_bert.core.settings import checked
from keras_bert.inputs.rows import PieceSpans, padded_rows
from keras_bert.text.vocabulary import Vocabulary

_SHOWN = 40


def as_list(texts: Any) -> list[Any]:
    """A sequence of examples as a list; NumPy arrays in it, such as the words of a pandas row, become lists too.

    Raises:
        ValueError: `texts` is a single text, whose characters would count as texts; a table or a dict, whose column
            names would; or not iterable.
    """
    if isinstance(texts, (str, bytes)):
        raise ValueError(
            f"texts: needs a list of texts. Received: the text {_shown(texts)}. Put it into a list: [text]."
        )
    kind = type(texts).__name__
    if isinstance(texts, Mapping) or hasattr(texts, "columns"):
        raise ValueError(f"texts: needs a list of texts. Received: a {kind}. Give one of its columns.")
    if not isinstance(texts, Iterable):
        raise ValueError(f"texts: needs a list of texts. Received: {_shown(texts)}. Put the texts into a list.")
    return [_without_arrays(example) for example in texts]


def _without_arrays(example: Any) -> Any:
    if isinstance(example, tuple):
        return tuple(map(_without_arrays, example))
    if isinstance(example, dict):
        return {name: _without_arrays(value) for name, value in example.items()}
    return example.tolist() if isinstance(example, np.ndarray) else example


def text_list(texts: Iterable[Any], pairs: bool = False) -> list[Any]:
    """The texts as strings; bytes are decoded as UTF-8.

    Args:
        texts: strings or bytes.
        pairs: whether to accept tuples or lists of two texts too, and return them as tuples.

    Raises:
        ValueError: `texts` is not a list (see `as_list`), or an item is not a text or not UTF-8.
    """
    texts = as_list(texts)
    return [
        tuple(map(_text, text)) if pairs and isinstance(text, (tuple, list)) and len(text) == 2 else _text(text)
        for text in texts
    ]


def _text(text: object) -> str:
    if not isinstance(text, (str, bytes)):
        raise ValueError(f"texts: needs strings. Received: {_shown(text)}. Give a string for each.")
    try:
        if isinstance(text, bytes):
            return text.decode("utf-8")
        text.encode("utf-8")
        return text
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise ValueError(f"texts: needs UTF-8. Received: {_shown(text)} ({error.reason}). Mend it.") from None


def _shown(text: object) -> str:
    if isinstance(text, (str, bytes)):
        return repr(text[:_SHOWN]) + ("…" if len(text) > _SHOWN else "")
    return repr(text)[:_SHOWN]


@checked
def encoder_inputs(rows: Sequence[ArrayLike] | tf.RaggedTensor, vocabulary: Vocabulary) -> dict[str, Any]:
    """Pads rows of piece ids into one batch of single segments: [CLS] pieces [SEP].

    Args:
        rows: the ids of each row, without special tokens.

    Returns: the encoder's inputs, arrays [batch, seq] int32; seq is the length of the longest row. In a graph, such as
        in `tf.data.Dataset.map`, `rows` is a RaggedTensor and the inputs are tensors.

    Example:
        bert = keras_bert.load("runs/demo")
        ids = bert.tokenizer(["The cat sat.", "A dog slept on the mat."])
        bert.encoder(keras_bert.encoder_inputs(ids, bert.tokenizer.vocabulary))["pooled_output"]      # [2, hidden]
    """
    if isinstance(rows, tf.RaggedTensor):
        inputs = padded_rows([PieceSpans.of(rows)], vocabulary)
        return {name: column.numpy() for name, column in inputs.items()} if tf.executing_eagerly() else inputs
    arrays = [np.asarray(row, np.int32) for row in rows]
    lengths = np.array([len(row) for row in arrays], np.int32)
    values = np.concatenate([np.zeros(0, np.int32), *arrays])
    with tf.device("CPU"):
        columns = (values, np.cumsum(lengths, dtype=np.int32) - lengths, lengths)
        inputs = padded_rows([PieceSpans(*map(tf.constant, columns))], vocabulary)
    return {name: column.numpy() for name, column in inputs.items()}


def require_numbers(outputs: Sequence[np.ndarray] | np.ndarray, what: str = "examples") -> None:
    """Raises `UserError` unless all outputs are finite.

    Args:
        outputs: an array for each example.
        what: the noun for the examples in the message.
    """
    broken = sum(not np.isfinite(output).all() for output in outputs)
    if broken:
        raise UserError(
            f"The model's outputs: needs finite numbers. Received: {broken} of {len(outputs)} {what} with others. "
            "Was it trained with too high a learning rate?"
        )
