"""RoBERTa's encoder: BERT's, with other rows of the position embeddings."""

import keras

from keras_bert.layers.embeddings import BertEmbeddings
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.models.roberta.kind import RobertaConfig


@keras.saving.register_keras_serializable(package="keras_bert")
class RobertaEncoder(BertEncoder):
    """`BertEncoder` with a `RobertaConfig`. Padding is at the end of rows."""

    config: RobertaConfig

    def make_embeddings(self) -> BertEmbeddings:
        config = self.config
        return BertEmbeddings(
            config.vocab_size,
            config.hidden_size,
            config.max_position_embeddings,
            config.type_vocab_size,
            config.initializer_range,
            config.layer_norm_eps,
            config.hidden_dropout_prob,
            first_position=config.first_position,
            dtype=self.dtype_policy,
            name="embeddings",
        )
