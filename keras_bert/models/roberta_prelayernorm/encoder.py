"""A pre-norm encoder (Xiong et al. 2020): each part of a block reads the LayerNorm of the states that it adds to."""

from typing import ClassVar

import keras

from keras_bert.layers.encoder_block import EncoderBlock
from keras_bert.layers.tensors import Tensor, new_layer_norm
from keras_bert.models.bert.encoder import BertEncoder


@keras.saving.register_keras_serializable(package="keras_bert")
class PreLayerNormBlock(EncoderBlock):
    """An `EncoderBlock` whose attention and feed-forward network read the LayerNorm of the states that they add to."""

    def attention_input(self, hidden: Tensor) -> Tensor:
        return self.attention_layer_norm(hidden)

    def with_attended(self, hidden: Tensor, attended: Tensor, training: bool = False) -> Tensor:
        return hidden + self.attention_dropout(attended, training=training)

    def fed_forward(self, hidden: Tensor, training: bool = False) -> Tensor:
        output = self.output_dense(self.inner(self.output_layer_norm(hidden), training))
        return hidden + self.output_dropout(output, training=training)


@keras.saving.register_keras_serializable(package="keras_bert")
class RobertaPreLayerNormEncoder(BertEncoder):
    """`BertEncoder` with a `RobertaPreLayerNormConfig`. `hidden_states` end with the LayerNorm of the last block's.

    Example:
        config = keras_bert.RobertaPreLayerNormConfig(vocab_size=60, hidden_size=16, num_attention_heads=2)
        keras_bert.RobertaPreLayerNormEncoder(config).count_params()
    """

    block_class: ClassVar[type[EncoderBlock]] = PreLayerNormBlock

    def make_final_layer_norm(self) -> keras.layers.LayerNormalization:
        return new_layer_norm(self.config.layer_norm_eps, self.dtype_policy, "final_layer_norm")
