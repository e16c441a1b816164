"""ALBERT's input representation: narrow embeddings, mapped to the layers' width (Lan et al. 2020, section 3.1)."""

from typing import Any

import keras

from keras_bert.layers.embeddings import BertEmbeddings
from keras_bert.layers.initializers import truncated_normal
from keras_bert.layers.tensors import Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class AlbertEmbeddings(BertEmbeddings):
    """`BertEmbeddings` of width `hidden_size`, then a dense layer of `output_size` units.

    Returns: [batch, seq, output_size].
    """

    def __init__(self, vocab_size: int, hidden_size: int, *, output_size: int, **kwargs: Any) -> None:
        super().__init__(vocab_size, hidden_size, **kwargs)
        self.output_size = output_size
        self.mapping = keras.layers.Dense(
            output_size,
            kernel_initializer=truncated_normal(self.initializer_range),
            dtype=self.dtype_policy,
            name="mapping",
        )

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        super().build(*input_shapes)
        self.mapping.build((None, None, self.hidden_size))

    def mapped(self, embedded: Tensor) -> Tensor:
        return self.mapping(embedded)

    def compute_output_shape(
        self,
        input_word_ids_shape: tuple[int | None, ...],
        input_type_ids_shape: tuple[int | None, ...] | None = None,
    ) -> tuple[int | None, ...]:
        return (*input_word_ids_shape, self.output_size)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "output_size": self.output_size}
