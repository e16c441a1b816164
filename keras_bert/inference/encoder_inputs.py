"""The encoder's inputs for pieces that are at hand as lists or arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_bert.inputs.pieces import PieceSpans
from keras_bert.inputs.segments import padded_rows
from keras_bert.text.vocabulary import Vocabulary


def encoder_inputs(rows: Sequence[ArrayLike] | tf.RaggedTensor, vocabulary: Vocabulary) -> dict[str, Any]:
    """Rows of piece ids as one padded batch of single segments: [CLS] pieces [SEP].

    Args:
        rows: the ids of each row, without special tokens.
        vocabulary: the vocabulary of the pieces.

    Returns: the encoder's inputs, arrays [batch, seq] int32; seq is the length of the longest row. In a graph, such as
        that of `tf.data.Dataset.map`, where rows are a RaggedTensor, they are tensors.
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
