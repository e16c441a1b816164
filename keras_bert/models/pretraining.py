"""The model for pretraining: the encoder with the heads of its objectives."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert.layers.pretraining_heads import (
    MOST_PLACES,
    MaskedLMHead,
    NextSentenceHead,
    SpanBoundaryHead,
    span_places,
)
from keras_bert.layers.tensors import Batch, Sums, Tensor
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.cross_entropy import cross_entropy
from keras_bert.models.encoder_with_heads import EncoderWithHeads
from keras_bert.models.kind import kind_of_config


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


# The terms of which a run has one: what the token head predicts.
_OF_TOKENS = ("mlm", "lm")
_LABELS = {
    "nsp": "next_sentence_labels",
    "sop": "sentence_order_labels",
    "sbo": "masked_lm_ids",
    "previous": "previous_token_ids",
}


class PretrainingObjective:
    """Sums over a batch, and the counts to divide them by.

    The training loop divides the sums over all replicas by the counts over all replicas, so the loss is the mean over
    all predictions of the global batch, not a mean of means. Each loss term is `sums[term]["loss"] / counts[term]`; the
    loss is the total of the terms.

    Args:
        mask_id: the id of [MASK], to find the positions where the input is [MASK].
        unigram_nats: [vocab] float32, -log p of each token in the training text. If given, `sums` also measures the
            unigram's cross-entropy at [MASK] positions or, of next tokens, at those of text (for validation).
        terms: the names of the loss terms: `mlm` or `lm`, which is what the token head predicts; and beside it `nsp`
            (next sentence), `sop` (sentence order), `sbo` (span boundary) or `previous` (previous tokens), each with
            its `TERM_logits` and labels.
            Whether masked or next tokens are predicted follows from the batch, so a run whose phases differ in that
            keeps its terms.
        sep_id: the id of [SEP], which is predicted as a next token but not counted as text.

    Attributes:
        terms: as given.
    """

    terms: tuple[str, ...]

    def __init__(
        self,
        mask_id: int,
        unigram_nats: np.ndarray | None = None,
        terms: Sequence[str] = ("mlm", "nsp"),
        sep_id: int | None = None,
    ) -> None:
        self.terms = tuple(terms)
        self.mask_id = mask_id
        self.unigram_nats = unigram_nats
        self.sep_id = sep_id

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Float32 scalars: the predictions or examples of each term, and those of `mask_token` or `text_token`."""
        counts = {term: ops.sum(self._weights(term, batch)) for term in self.terms}
        name, weights = self._telling(batch)
        return {**counts, name: ops.sum(weights)}

    def sums(self, outputs: Batch, batch: Batch) -> Sums:
        """`{term: {metric: scalar}}` of a `BertForPreTraining`'s outputs.

        `mask_token` has the loss at [MASK] positions only. A kept token gives the answer away and a replaced one
        misleads, so the loss over all predictions tells less about what the model has learned. Of next tokens,
        `text_token` has the loss without those that are [SEP], which the unigram does not know.
        """
        metrics = {
            term: cross_entropy(outputs[f"{_head(term)}_logits"], self._labels(term, batch)) for term in self.terms
        }
        sums = {
            term: {name: ops.sum(values * self._weights(term, batch)) for name, values in metrics[term].items()}
            for term in self.terms
        }
        of_tokens = self.terms[0]
        name, weights = self._telling(batch)
        sums[name] = {"loss": ops.sum(metrics[of_tokens]["loss"] * weights)}
        if self.unigram_nats is not None:
            unigram = ops.take(self.unigram_nats, self._labels(of_tokens, batch), axis=0)
            sums[name]["unigram_loss"] = ops.sum(unigram * weights)
        return sums

    def _labels(self, term: str, batch: Batch) -> Tensor:
        if term in _OF_TOKENS:
            return batch["next_token_ids"] if _predicts_next(batch) else batch["masked_lm_ids"]
        return batch[_LABELS[term]]

    def _weights(self, term: str, batch: Batch) -> Tensor:
        if term in ("nsp", "sop"):
            return batch["example_weights"]
        if _predicts_next(batch):
            return batch["previous_token_weights" if term == "previous" else "next_token_weights"]
        weights = batch["masked_lm_weights"]
        if term == "sbo":  # As in SpanBERT's code, a span's tokens beyond the last position embedding do not count.
            weights = weights * ops.cast(span_places(batch["masked_lm_positions"]).place < MOST_PLACES, "float32")
        return weights

    def _telling(self, batch: Batch) -> tuple[str, Tensor]:
        """The name and the weights of the predictions that tell what was learned."""
        if _predicts_next(batch):
            assert self.sep_id is not None
            is_text = ops.cast(batch["next_token_ids"] != self.sep_id, "float32")
            return "text_token", batch["next_token_weights"] * is_text
        inputs = ops.take_along_axis(batch["input_word_ids"], batch["masked_lm_positions"], axis=1)
        return "mask_token", batch["masked_lm_weights"] * ops.cast(inputs == self.mask_id, "float32")


def _predicts_next(batch: Batch) -> bool:
    return "next_token_ids" in batch


def _head(term: str) -> str:
    """The name of the head whose logits a term takes."""
    return "mlm" if term in _OF_TOKENS else term
