"""ALBERT's encoder: narrow embeddings, and layers that share their weights (Lan et al. 2020, section 3.1)."""

from typing import Any

import keras

from keras_bert.layers.embeddings import BertEmbeddings
from keras_bert.layers.encoder_block import EncoderBlock
from keras_bert.layers.tensors import Tensor, new_dense
from keras_bert.models.albert.kind import AlbertConfig
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.bert.encoder import BertEncoder, embeddings_options


@keras.saving.register_keras_serializable(package="keras_bert")
class AlbertEmbeddings(BertEmbeddings):
    """`BertEmbeddings` of width `hidden_size`, then a dense layer of `output_size` units; None for no such layer.

    Returns: [batch, seq, output_size or hidden_size].
    """

    def __init__(self, vocab_size: int, hidden_size: int, *, output_size: int | None, **kwargs: Any) -> None:
        super().__init__(vocab_size, hidden_size, **kwargs)
        self.output_size = output_size
        self.mapping = output_size and new_dense(output_size, self.initializer_range, self.dtype_policy, "mapping")

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        super().build(*input_shapes)
        if self.mapping:
            self.mapping.build((None, None, self.hidden_size))

    def mapped(self, embedded: Tensor) -> Tensor:
        return self.mapping(embedded) if self.mapping else embedded

    def compute_output_shape(
        self, input_word_ids_shape: tuple[int | None, ...], input_type_ids_shape: tuple[int | None, ...] | None = None
    ) -> tuple[int | None, ...]:
        return (*input_word_ids_shape, self.output_size or self.hidden_size)


def mapped_embeddings_options(config: BertConfig) -> dict[str, Any]:
    """The arguments of an architecture's `AlbertEmbeddings`."""
    return {**embeddings_options(config), "output_size": config.hidden_size if config.maps_embeddings else None}


@keras.saving.register_keras_serializable(package="keras_bert")
class AlbertEncoder(BertEncoder):
    """`BertEncoder` with an `AlbertConfig`.

    `blocks` are all blocks that states pass through; the blocks of a group contain the same layers, made by the first
    of them.

    Example:
        config = keras_bert.AlbertConfig(vocab_size=60, hidden_size=16, num_attention_heads=2, embedding_size=8)
        keras_bert.AlbertEncoder(config).count_params()
    """

    config: AlbertConfig

    def make_embeddings(self) -> BertEmbeddings:
        return AlbertEmbeddings(**mapped_embeddings_options(self.config), dtype=self.dtype_policy)

    def make_blocks(self) -> list[EncoderBlock]:
        config = self.config
        blocks: list[EncoderBlock] = []
        attentions: dict[tuple[int, int], EncoderBlock] = {}
        ffns: dict[tuple[int, int], EncoderBlock] = {}
        for layer in range(config.num_hidden_layers):
            attention_group = config.group_of(layer, config.attention_groups)
            ffn_group = config.group_of(layer, config.ffn_groups)
            for inner in range(config.inner_group_num):
                attention_of, ffn_of = attentions.get((attention_group, inner)), ffns.get((ffn_group, inner))
                block = self.make_block(len(blocks), attention_of=attention_of, ffn_of=ffn_of)
                attentions.setdefault((attention_group, inner), block)
                ffns.setdefault((ffn_group, inner), block)
                blocks.append(block)
        return blocks
