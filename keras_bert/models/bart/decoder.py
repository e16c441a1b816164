"""BART's decoder (Lewis et al. 2020, section 2.1), and its language model head."""

from typing import Any

import keras

from keras_bert.layers.decoder_block import DecoderBlock
from keras_bert.layers.tensors import Tensor
from keras_bert.layers.tied_decoder import TiedDecoder
from keras_bert.models.bart.embeddings import PositionedEmbeddings
from keras_bert.models.bart.kind import BartConfig
from keras_bert.models.bert.encoder import block_options
from keras_bert.models.encoder_decoder import Cache, Decoder


class BartDecoder(Decoder):
    """Turns words into states, each of which sees the words up to its own and the encoder's states."""

    def __init__(self, config: BartConfig, **kwargs: Any) -> None:
        heads = config.decoder_attention_heads
        super().__init__(heads, config.hidden_size // heads, **kwargs)
        self.config = config
        policy = self.dtype_policy
        self.embeddings = PositionedEmbeddings(config, dtype=policy, name="embeddings")
        options = {
            **block_options(config),
            "num_attention_heads": heads,
            "intermediate_size": config.decoder_ffn_dim,
            "inner_dropout_rate": config.activation_dropout,
        }
        self.blocks = [
            DecoderBlock(**options, dtype=policy, name=f"block_{index}") for index in range(config.decoder_layers)
        ]

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        shape = (None, None, self.config.hidden_size)
        self.embeddings.build(shape)
        for block in self.blocks:
            block.build(shape)

    def begin(self, memory: Tensor, memory_mask: Tensor, width: int) -> Cache:
        """See `Decoder.begin`. Raises `ValueError` for more tokens than there are positions."""
        if width > (most := self.config.max_position_embeddings):
            raise ValueError(f"width: needs at most max_position_embeddings ({most}). Received: {width}.")
        return super().begin(memory, memory_mask, width)

    def embedded(self, words: Tensor, first_place: Tensor | int, training: bool = False) -> Tensor:
        return self.embeddings(words, first_place=first_place, training=training)


@keras.saving.register_keras_serializable(package="keras_bert")
class BartTokenHead(TiedDecoder):
    """The word embeddings, and a bias [1, vocab] as in files, which is not trained, as in transformers."""

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        self.bias = self.add_weight(
            name="bias", shape=(1, self.vocab_size), initializer="zeros", trainable=False, autocast=False
        )
