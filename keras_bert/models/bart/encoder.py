"""BART's encoder (Lewis et al. 2020, section 2.1)."""

from typing import Any

import keras

from keras_bert.layers.encoder_block import EncoderBlock
from keras_bert.models.bart.embeddings import BartEmbeddings
from keras_bert.models.bart.kind import BartConfig
from keras_bert.models.bert.encoder import BertEncoder


@keras.saving.register_keras_serializable(package="keras_bert")
class BartEncoder(BertEncoder):
    """A BART's encoder without its decoder (Lewis et al. 2020, section 2.1).

    Its arguments, inputs and outputs are those of a `BertEncoder`. There are no segments: `input_type_ids` are ignored.
    The pooler, which transformers' BART lacks, reads <s>.

    Example:
        config = keras_bert.BartConfig(vocab_size=60, hidden_size=48, num_hidden_layers=2)
        ids = np.array([[0, 7, 2]], "int32")
        inputs = {"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": ids * 0}
        keras_bert.BartEncoder(config)(inputs)["sequence_output"]      # [1, 3, 48]
    """

    config: BartConfig

    def make_embeddings(self) -> BartEmbeddings:
        return BartEmbeddings(self.config, dtype=self.dtype_policy, name="embeddings")

    def make_block(self, index: int, **options: Any) -> EncoderBlock:
        return super().make_block(index, inner_dropout_rate=self.config.activation_dropout, **options)
