"""The model that is pretrained: the encoder under its two heads."""

import keras

from keras_bert.layers.masked_lm_head import MaskedLMHead
from keras_bert.layers.next_sentence_head import NextSentenceHead
from keras_bert.models.encoder_with_heads import EncoderWithHeads


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForPreTraining(EncoderWithHeads):
    """Masked LM and next sentence prediction over one encoder (paper, section 3.1).

    Call arguments:
        inputs: the encoder's dict; with `masked_lm_positions` [batch, predictions] int32 the masked LM
            logits are computed there only.

    Returns a dict: `mlm_logits` [batch, predictions or seq, vocab] and `nsp_logits` [batch, 2], float32.
    """

    def __init__(self, config, **kwargs):
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

    def call(self, inputs, training=False):
        encoded = self.encoder(inputs, training=training)
        mlm_logits = self.mlm_head(
            encoded["sequence_output"],
            self.encoder.embeddings.word_embeddings,
            positions=inputs.get("masked_lm_positions"),
        )
        return {"mlm_logits": mlm_logits, "nsp_logits": self.nsp_head(encoded["pooled_output"])}
