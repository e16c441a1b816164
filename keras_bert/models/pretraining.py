"""The model for pretraining: the encoder with both pretraining heads."""

from typing import Any

import keras

from keras_bert.config.bert import BertConfig
from keras_bert.layers.masked_lm_head import MaskedLMHead
from keras_bert.layers.next_sentence_head import NextSentenceHead
from keras_bert.models.encoder_with_heads import EncoderWithHeads
from keras_bert.models.tensors import Batch, Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForPreTraining(EncoderWithHeads):
    """Masked LM and next sentence prediction on one encoder (paper, section 3.1).

    Args:
        config: the architecture of the encoder.

    Call arguments:
        inputs: the encoder's inputs. If they include `masked_lm_positions` [batch, predictions] int32, the masked LM
            logits are computed only there.

    Returns a dict: `mlm_logits` [batch, predictions or seq, vocab] and `nsp_logits` [batch, 2], float32.
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        policy = self.dtype_policy
        self.mlm_head = MaskedLMHead(
            config.vocab_size,
            config.hidden_size,
            config.hidden_act,
            config.initializer_range,
            config.layer_norm_eps,
            dtype=policy,
            name="mlm_head",
        )
        self.nsp_head = NextSentenceHead(config.hidden_size, config.initializer_range, dtype=policy, name="nsp_head")
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        encoded = self.encoder(inputs, training=training)
        mlm_logits = self.mlm_head(
            encoded["sequence_output"],
            self.encoder.embeddings.word_embeddings,
            positions=inputs.get("masked_lm_positions"),
        )
        return {"mlm_logits": mlm_logits, "nsp_logits": self.nsp_head(encoded["pooled_output"])}
