"""DistilBERT's encoder (Sanh et al. 2019, section 3)."""

from typing import ClassVar

import keras

from keras_bert.layers.embeddings import BertEmbeddings
from keras_bert.layers.encoder_block import EncoderBlock
from keras_bert.layers.heads import Pooler
from keras_bert.layers.tensors import Tensor, new_table
from keras_bert.models.bert.encoder import BertEncoder


@keras.saving.register_keras_serializable(package="keras_bert")
class DistilbertEmbeddings(BertEmbeddings):
    """`BertEmbeddings` whose only segment has a fixed embedding of zeros."""

    def add_segments(self) -> None:
        sizes = self.type_vocab_size, self.hidden_size
        self.token_type_embeddings = new_table(self, "token_type_embeddings", *sizes, "zeros", trainable=False)


@keras.saving.register_keras_serializable(package="keras_bert")
class DistilbertBlock(EncoderBlock):
    """An `EncoderBlock` without dropout between attention and residual connection."""

    def with_attended(self, hidden: Tensor, attended: Tensor, training: bool = False) -> Tensor:
        return super().with_attended(hidden, attended)


@keras.saving.register_keras_serializable(package="keras_bert")
class DistilbertEncoder(BertEncoder):
    """`BertEncoder` with a `DistilbertConfig`. There are no segments: `input_type_ids` are ignored.

    Its pooler is transformers' `pre_classifier`: dense and ReLU of [CLS].

    Example:
        config = keras_bert.DistilbertConfig(vocab_size=60, hidden_size=16, num_attention_heads=2)
        keras_bert.DistilbertEncoder(config).count_params()
    """

    block_class: ClassVar[type[EncoderBlock]] = DistilbertBlock
    embeddings_class: ClassVar[type[BertEmbeddings]] = DistilbertEmbeddings

    def make_pooler(self) -> Pooler:
        config = self.config
        return Pooler(config.hidden_size, config.initializer_range, "relu", dtype=self.dtype_policy, name="pooler")
