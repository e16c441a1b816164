"""A pre-norm encoder with gated feed-forward networks."""

from typing import Any, ClassVar

import keras

from keras_bert.layers.encoder_block import EncoderBlock
from keras_bert.layers.tensors import Tensor
from keras_bert.models.roberta_prelayernorm.encoder import PreLayerNormBlock, RobertaPreLayerNormEncoder


@keras.saving.register_keras_serializable(package="keras_bert")
class GatedPreLayerNormBlock(PreLayerNormBlock):
    """A `PreLayerNormBlock` with a gated feed-forward network (Shazeer 2020): the activation is the gate's."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.gate = self._dense(self.intermediate_size, "gate")

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        super().build(*input_shapes)
        self.gate.build((None, None, self.hidden_size))

    def inner(self, hidden: Tensor, training: bool = False) -> Tensor:
        return self.activation(self.gate(hidden)) * self.intermediate(hidden)


@keras.saving.register_keras_serializable(package="keras_bert")
class PreLayerNormGluEncoder(RobertaPreLayerNormEncoder):
    """`RobertaPreLayerNormEncoder` with a `PreLayerNormGluConfig`.

    Example:
        config = keras_bert.PreLayerNormGluConfig(vocab_size=60, hidden_size=16, num_attention_heads=2)
        keras_bert.PreLayerNormGluEncoder(config).count_params()
    """

    block_class: ClassVar[type[EncoderBlock]] = GatedPreLayerNormBlock
