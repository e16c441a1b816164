"""A language model head that is only a decoder: the word embeddings, and a bias."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.tensors import PlainLayer, Tensor, gather_positions


@keras.saving.register_keras_serializable(package="keras_bert")
class TiedDecoder(PlainLayer):
    """Turns states and word embeddings into logits, without the dense layer and LayerNorm of a `MaskedLMHead`.

    Call arguments:
        states: [batch, seq, hidden].
        word_embeddings: [vocab, hidden], the encoder's table.
        positions: [batch, predictions] int32, where to predict; None for all positions.
    Returns: logits [batch, predictions or seq, vocab], float32.
    """

    def __init__(self, vocab_size: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.vocab_size = vocab_size

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        self.bias = self.add_weight(name="bias", shape=(self.vocab_size,), initializer="zeros", autocast=False)

    def call(self, states: Tensor, word_embeddings: Tensor, positions: Tensor | None = None) -> Tensor:
        if positions is not None:
            states = gather_positions(states, positions)
        table = ops.cast(word_embeddings, self.compute_dtype)
        return ops.cast(ops.matmul(states, ops.transpose(table)), "float32") + self.bias
