"""T5's output layer, from the decoder's states to the next token."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.tensors import PlainLayer, Tensor, gather_positions, normal


@keras.saving.register_keras_serializable(package="keras_bert")
class T5TokenHead(PlainLayer):
    """From states to logits, without biases.

    Args:
        tied: whether it uses the word embeddings as its weights and divides the states by the square root of their
            width. If not, it has a `kernel` [vocab, hidden] of its own (T5 1.1).

    Call arguments:
        states: [batch, seq, hidden].
        word_embeddings: [vocab, hidden], the encoder's table.
        positions: [batch, predictions] int32, where to predict; None for all positions.
    Returns: logits [batch, predictions or seq, vocab], float32.
    """

    def __init__(
        self, vocab_size: int, hidden_size: int, tied: bool = True, initializer_factor: float = 1.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.tied = tied
        self.initializer_factor = initializer_factor
        self.kernel = None

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        if not self.tied:
            shape = (self.vocab_size, self.hidden_size)
            self.kernel = self.add_weight(name="kernel", shape=shape, initializer=normal(self.initializer_factor))

    def call(self, states: Tensor, word_embeddings: Tensor, positions: Tensor | None = None) -> Tensor:
        if positions is not None:
            states = gather_positions(states, positions)
        if self.tied:
            states, table = states * self.hidden_size**-0.5, word_embeddings
        else:
            table = self.kernel
        table = ops.cast(table, self.compute_dtype)
        return ops.cast(ops.matmul(states, ops.transpose(table)), "float32")
