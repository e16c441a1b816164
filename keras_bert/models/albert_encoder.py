"""ALBERT's encoder: narrow embeddings, and layers that share their weights (Lan et al. 2020, section 3.1)."""

import keras

from keras_bert.config.albert import AlbertConfig
from keras_bert.config.bert import SINUSOIDAL
from keras_bert.layers.albert_embeddings import AlbertEmbeddings
from keras_bert.layers.embeddings import BertEmbeddings
from keras_bert.layers.encoder_block import EncoderBlock
from keras_bert.models.encoder import BertEncoder


@keras.saving.register_keras_serializable(package="keras_bert")
class AlbertEncoder(BertEncoder):
    """`BertEncoder` with an `AlbertConfig`.

    `blocks` holds a block for each that states pass through; blocks of a group have the same layers in them, and the
    first one of the group has made them.
    """

    config: AlbertConfig

    def make_embeddings(self) -> BertEmbeddings:
        config = self.config
        return AlbertEmbeddings(
            config.vocab_size,
            config.embedding_size,
            max_position_embeddings=config.max_position_embeddings,
            type_vocab_size=config.type_vocab_size,
            initializer_range=config.initializer_range,
            layer_norm_eps=config.layer_norm_eps,
            dropout_rate=config.hidden_dropout_prob,
            sinusoidal=config.positions == SINUSOIDAL,
            output_size=config.hidden_size,
            dtype=self.dtype_policy,
            name="embeddings",
        )

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
