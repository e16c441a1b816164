"""The model for pretraining: the encoder with the heads of its objectives."""

from typing import Any

import keras

from keras_bert.config.bert import BertConfig
from keras_bert.layers.masked_lm_head import MaskedLMHead
from keras_bert.layers.next_sentence_head import NextSentenceHead
from keras_bert.layers.span_boundary_head import SpanBoundaryHead
from keras_bert.model_kinds import kind_of_config
from keras_bert.models.encoder_with_heads import EncoderWithHeads
from keras_bert.models.tensors import Batch, Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForPreTraining(EncoderWithHeads):
    """Masked LM and next sentence prediction on one encoder (paper, section 3.1), and what later papers added.

    Args:
        config: the architecture of the encoder.
        sentence_order: whether there is a head for sentence order prediction (ALBERT). An ALBERT always has it.
        span_boundary: whether there is a head for the span boundary objective (SpanBERT).
        next_sentence: whether there is a head for next sentence prediction. A BERT always has it.

    Call arguments:
        inputs: the encoder's inputs. If they include `masked_lm_positions` [batch, predictions] int32, the masked LM
            logits are computed only there. The span boundary objective needs them. If they include `next_token_ids`,
            attention is causal, whatever the config says.

    An ELMo predicts the next token from the first half of a state, and with inputs `previous_token_ids` the previous
    token from the second half (`previous_logits` [batch, seq, vocab]).

    Returns a dict: `mlm_logits` [batch, predictions or seq, vocab], float32; with their heads also `nsp_logits`
    [batch, 2], `sop_logits` [batch, 2] and, for inputs with positions, `sbo_logits` [batch, predictions, vocab].
    """

    def __init__(
        self,
        config: BertConfig,
        sentence_order: bool = False,
        span_boundary: bool = False,
        next_sentence: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(config, **kwargs)
        policy, always = self.dtype_policy, kind_of_config(config).pretraining_heads
        sentence_order, next_sentence = sentence_order or "sop" in always, next_sentence or "nsp" in always
        of_decoder = (
            config.vocab_size,
            config.lm_width,
            config.hidden_act,
            config.initializer_range,
            config.layer_norm_eps,
        )
        width, tied = config.embedding_width, config.tie_word_embeddings
        self.mlm_head = MaskedLMHead(*of_decoder, embedding_size=width, tied=tied, dtype=policy, name="mlm_head")
        self.nsp_head = None
        if next_sentence:
            hidden, deviation = config.hidden_size, config.initializer_range
            self.nsp_head = NextSentenceHead(hidden, deviation, dtype=policy, name="nsp_head")
        # ALBERT's dropout, whatever the encoder's.
        self.sop_head = self.make_classifier(2, "sop_head", dropout_prob=0.1) if sentence_order else None
        self.sbo_head = None
        if span_boundary:
            self.sbo_head = SpanBoundaryHead(
                *of_decoder, embedding_size=config.embedding_width, dtype=policy, name="sbo_head"
            )
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        causal = True if "next_token_ids" in inputs else None
        encoded = self.encoder(inputs, training=training, causal=causal)
        sequence_output, pooled_output = encoded["sequence_output"], encoded["pooled_output"]
        table, positions = self.encoder.embeddings.word_embeddings, inputs.get("masked_lm_positions")
        width = self.config.lm_width
        forward = sequence_output if width == self.config.hidden_size else sequence_output[..., :width]
        outputs = {"mlm_logits": self.mlm_head(forward, table, positions=positions)}
        if "previous_token_ids" in inputs:
            outputs["previous_logits"] = self.mlm_head(sequence_output[..., width:], table)
        if self.nsp_head is not None:
            outputs["nsp_logits"] = self.nsp_head(pooled_output)
        if self.sop_head is not None:
            outputs["sop_logits"] = self.sop_head(pooled_output, training=training)
        if self.sbo_head is not None and positions is not None:
            outputs["sbo_logits"] = self.sbo_head(sequence_output, table, positions)
        return outputs

    def get_config(self) -> dict[str, Any]:
        heads = {
            "sentence_order": self.sop_head is not None,
            "span_boundary": self.sbo_head is not None,
            "next_sentence": self.nsp_head is not None,
        }
        return {**super().get_config(), **heads}
