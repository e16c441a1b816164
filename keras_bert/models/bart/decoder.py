"""BART's decoder (Lewis et al. 2020, section 2.1)."""

from typing import Any

from keras import ops

from keras_bert.layers.decoder_block import DecoderBlock
from keras_bert.layers.tensors import Tensor
from keras_bert.layers.visibility import as_bias, hidden_positions, later_places
from keras_bert.models.bart.embeddings import PositionedEmbeddings
from keras_bert.models.bart.kind import BartConfig
from keras_bert.models.encoder_decoder import Cache, Decoder


class BartDecoder(Decoder):
    """From words to states, each of which has seen the words up to its own and the encoder's states."""

    def __init__(self, config: BartConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        policy = self.dtype_policy
        self.embeddings = PositionedEmbeddings(config, dtype=policy, name="embeddings")
        self.blocks = [
            DecoderBlock(
                config.hidden_size,
                config.decoder_attention_heads,
                config.decoder_ffn_dim,
                config.hidden_act,
                config.initializer_range,
                config.layer_norm_eps,
                config.hidden_dropout_prob,
                config.attention_probs_dropout_prob,
                inner_dropout_rate=config.activation_dropout,
                dtype=policy,
                name=f"block_{index}",
            )
            for index in range(config.decoder_layers)
        ]

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        shape = (None, None, self.config.hidden_size)
        self.embeddings.build(shape)
        for block in self.blocks:
            block.build(shape)

    def call(
        self,
        words: Tensor,
        memory: Tensor,
        memory_mask: Tensor,
        decoder_mask: Tensor | None = None,
        first_place: Tensor | int = 0,
        training: bool = False,
    ) -> Tensor:
        hidden = self.embeddings(words, first_place=first_place, training=training)
        mask = ops.ones(ops.shape(words)[:2], "int32") if decoder_mask is None else decoder_mask
        attention_bias = as_bias(hidden_positions(mask, causal=True), self.compute_dtype)
        memory_bias = as_bias(hidden_positions(memory_mask, causal=False), self.compute_dtype)
        for block in self.blocks:
            hidden = block(hidden, attention_bias, block.remember(memory), memory_bias, training=training)
        return hidden

    def begin(self, memory: Tensor, memory_mask: Tensor, width: int) -> Cache:
        rows, size = ops.shape(memory)[0], self.config.hidden_size // self.config.decoder_attention_heads
        empty = ops.zeros((rows, self.config.decoder_attention_heads, width, size), self.compute_dtype)
        return Cache(
            targets=tuple((empty, empty) for _ in self.blocks),
            memory=tuple(block.remember(memory) for block in self.blocks),
            memory_bias=as_bias(hidden_positions(memory_mask, causal=False), self.compute_dtype),
        )

    def step(self, words: Tensor, place: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        hidden = self.embeddings(words, place)
        columns = ops.arange(ops.shape(cache.targets[0][0])[2], dtype="int32")
        attention_bias = as_bias(later_places(ops.reshape(place, (1,)), columns), self.compute_dtype)
        is_new, targets = ops.equal(columns, place), []
        for block, before, remembered in zip(self.blocks, cache.targets, cache.memory, strict=True):
            hidden, read = block.step(hidden, attention_bias, is_new, before, remembered, cache.memory_bias)
            targets.append(read)
        return hidden, cache._replace(targets=tuple(targets))
