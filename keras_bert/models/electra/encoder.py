"""ELECTRA's encoder, and the embeddings of a discriminator, which derive from its generator's."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.embeddings import BertEmbeddings
from keras_bert.layers.heads import Pooler
from keras_bert.layers.tensors import Tensor, new_table
from keras_bert.models.albert.encoder import AlbertEmbeddings, mapped_embeddings_options
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.models.electra.kind import ElectraConfig


class DiscriminatorEmbeddings(AlbertEmbeddings):
    """Embeddings whose three tables derive from a generator's; LayerNorm and mapping are their own.

    Shared (Clark et al. 2020, section 3.2), they are the generator's. Disentangled (He et al. 2021, DeBERTaV3, section
    3.2), each is the generator's, without gradient, plus a learned difference that begins at zero.

    Args:
        base: the generator's embeddings, of the same width.
        disentangled: whether to disentangle them.
    """

    def __init__(self, *, base: BertEmbeddings, disentangled: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.base = base
        self.disentangled = disentangled

    def add_tables(self) -> None:
        if not self.disentangled:
            return
        for name in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
            rows, width = getattr(self.base, name).shape
            setattr(self, f"{name}_difference", new_table(self, f"{name}_difference", rows, width, "zeros"))

    def _table(self, name: str) -> Tensor:
        table = getattr(self.base, name)
        if not self.disentangled:
            return table
        return ops.stop_gradient(table) + getattr(self, f"{name}_difference")

    @property
    def word_embeddings(self) -> Tensor:
        return self._table("word_embeddings")

    @property
    def position_embeddings(self) -> Tensor:
        return self._table("position_embeddings")

    @property
    def token_type_embeddings(self) -> Tensor:
        return self._table("token_type_embeddings")


@keras.saving.register_keras_serializable(package="keras_bert")
class ElectraEncoder(BertEncoder):
    """`BertEncoder` with an `ElectraConfig`.

    Its pooler is transformers' head of a classifier: dense and gelu of [CLS].

    Example:
        config = keras_bert.ElectraConfig(vocab_size=60, hidden_size=16, num_attention_heads=2, embedding_size=8)
        keras_bert.ElectraEncoder(config).count_params()
    """

    config: ElectraConfig

    def make_embeddings(self) -> BertEmbeddings:
        return AlbertEmbeddings(**mapped_embeddings_options(self.config), dtype=self.dtype_policy)

    def make_pooler(self) -> Pooler:
        config = self.config
        return Pooler(config.hidden_size, config.initializer_range, "gelu", dtype=self.dtype_policy, name="pooler")
