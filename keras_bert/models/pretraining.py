"""The model for pretraining, an encoder with the heads of its objectives, and the loss."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert.layers.heads import MaskedLMHead
from keras_bert.layers.tensors import Batch, Sums, Tensor, new_dense
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.encoder_with_heads import EncoderWithHeads
from keras_bert.models.kind import kind_of_config, with_article
from keras_bert.models.objectives import PAPERS_TERMS
from keras_bert.models.term import Term, all_terms, term_named


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForPreTraining(EncoderWithHeads):
    """Masked LM and next sentence prediction on one encoder (paper, section 3.1), and what later papers added.

    Args:
        terms: the names of the objectives that need a head, such as `("sbo",)`; names of those without a head of their
            own are allowed. A BERT always has the head of next sentence prediction (`nsp`), an ALBERT that of sentence
            order prediction (`sop`).
        mapped_size: the size of a dense layer on the last states, for training only: folders leave it out. None for no
            such layer.
        kwargs: for `keras.Model`; and `next_sentence`, `sentence_order` and `span_boundary`, which add a head as the
            terms `nsp`, `sop` and `sbo` do.

    Attributes:
        terms: the names of the terms for which it has a head.

    Call arguments:
        inputs: the encoder's inputs. If they include `masked_lm_positions` [batch, predictions] int32, the masked LM
            logits are computed only there. The span boundary objective needs them. If they include `next_token_ids`,
            attention is causal, whatever the config says. An XLNet with `permutation_ranks` (see `XlnetEncoder`)
            predicts from its query stream, and with `mems` also returns its `hidden_states`.

    An ELMo predicts the next token from the first half of a state, and with inputs `previous_token_ids` the previous
    token from the second half (`previous_logits` [batch, seq, vocab]).

    Returns a dict: `mlm_logits` [batch, predictions or seq, vocab], float32; with their heads also `nsp_logits`
    [batch, 2], `sop_logits` [batch, 2] and, for inputs with positions, `sbo_logits` [batch, predictions, vocab]; with
    `mapped_size`, `mapped_states` [batch, seq, mapped_size].

    Example:
        config = keras_bert.BertConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
        ids = np.ones((2, 8), "int32")
        inputs = {"input_word_ids": ids, "input_mask": ids, "input_type_ids": ids * 0}
        inputs["masked_lm_positions"] = np.array([[3], [5]], "int32")
        keras_bert.BertForPreTraining(config)(inputs)["mlm_logits"]      # [2, 1, 60]
    """

    terms: tuple[str, ...]

    def __init__(
        self, config: BertConfig, *, terms: Sequence[str] = (), mapped_size: int | None = None, **kwargs: Any
    ) -> None:
        asked = {*map(term_named, terms)}
        asked |= {term for term in all_terms() if term.argument and kwargs.pop(term.argument, False)}
        kind = kind_of_config(config)
        if kind.decodes:
            raise ValueError(
                f"BertForPreTraining: needs a model without a decoder. Received: {with_article(kind.title)}, which is "
                "an EncoderDecoder."
            )
        asked |= {*map(term_named, kind.pretraining_heads)}
        super().__init__(config, with_pooler=kind.pretrains_pooler or any(term.has_head for term in asked), **kwargs)
        options = {"dtype": self.dtype_policy, "name": "mlm_head"}
        self.mlm_head = kind.make_token_head(config, **options) or MaskedLMHead(
            config.vocab_size,
            config.lm_width,
            kind.token_head_act or config.hidden_act,
            config.initializer_range,
            config.layer_norm_eps,
            embedding_size=config.embedding_width,
            tied=config.tie_word_embeddings,
            **options,
        )
        for term in all_terms():
            if term.has_head:
                setattr(self, term.head, term.make_head(self) if term in asked else None)
        self.terms = tuple(term.name for term in all_terms() if term.has_head and term in asked)
        self.mapped_size, self.state_map = mapped_size, None
        if mapped_size is not None:
            self.state_map = new_dense(mapped_size, config.initializer_range, self.dtype_policy, "state_map")
        self.build()

    @property
    def reads_predictions(self) -> bool:
        """Whether only the last states at the predicted positions are read, so that others need not be computed."""
        is_narrow = kind_of_config(self.config).attends and self.state_map is None
        return is_narrow and not any(term_named(name).reads_states for name in self.terms)

    def head_of(self, term: Term) -> keras.layers.Layer:
        """The head of one of its `terms`."""
        return getattr(self, term.head)

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        width, positions = self.config.lm_width, inputs.get("masked_lm_positions")
        options = {"causal": True if "next_token_ids" in inputs else None}
        if positions is not None and self.reads_predictions:
            options, positions = {**options, "positions": positions}, None
        encoded = self.encoder(inputs, training=training, **options)
        sequence_output, table = encoded["sequence_output"], self.encoder.embeddings.word_embeddings
        forward = sequence_output if width == self.config.hidden_size else sequence_output[..., :width]
        if "query_output" in encoded:
            forward, positions = encoded["query_output"], None
        outputs = {"mlm_logits": self.mlm_head(forward, table, positions=positions)}
        if "mems" in inputs:
            outputs["hidden_states"] = encoded["hidden_states"]
        if "previous_token_ids" in inputs:
            outputs["previous_logits"] = self.mlm_head(sequence_output[..., width:], table)
        if self.state_map is not None:
            outputs["mapped_states"] = self.state_map(sequence_output)
        encoded = {**encoded, "word_embeddings": table}
        for term in map(term_named, self.terms):
            logits = term.logits(self.head_of(term), encoded, inputs, training)
            if logits is not None:
                outputs[term.output] = logits
        return outputs

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "terms": list(self.terms), "mapped_size": self.mapped_size}


class PretrainingObjective:
    """The terms' sums over a batch, and the counts to divide them by.

    The training loop divides the sums over all replicas by the counts over all replicas, so the loss is the mean over
    all predictions of the global batch, not a mean of means. Each loss term is `sums[term]["loss"] / counts[term]`; the
    loss is the total of the terms.

    Args:
        mask_id: the id of [MASK], to find the positions where the input is [MASK].
        unigram_nats: [vocab] float32, -log p of each token in the training text. If given, `sums` also measures the
            unigram's cross-entropy at [MASK] positions or, for next tokens, at those of text (for validation).
        terms: the names of the loss terms (`models/objectives.py`), the token head's first. The batch says whether
            masked or next tokens are predicted, so a run whose phases differ in that keeps its terms.
        sep_id, cls_id: the ids of [SEP] and [CLS], which are predicted as next tokens but not counted as text.
        marker_ids: the ids of other tokens that a decoder predicts but texts lack, such as T5's sentinels.
        weights: factors on the losses of terms, instead of `Term.weight`.
    """

    def __init__(
        self,
        mask_id: int,
        unigram_nats: np.ndarray | None = None,
        terms: Sequence[str] = PAPERS_TERMS,
        sep_id: int | None = None,
        cls_id: int | None = None,
        marker_ids: Sequence[int] = (),
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self.terms = tuple(terms)
        self.mask_id = mask_id
        self.unigram_nats = unigram_nats
        self.special_ids = [index for index in (sep_id, cls_id, *marker_ids) if index is not None]
        self._terms = [term_named(name) for name in self.terms]
        self._weights = {**{term.name: term.weight for term in self._terms}, **(weights or {})}

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """The number of predictions or examples of each term and of `mask_token` or `text_token`: float32 scalars."""
        counts = {term.name: ops.sum(term.weights(batch)) for term in self._terms}
        if not self._terms[0].predicts_tokens:
            return counts
        name, weights = self._unseen_tokens(batch)
        return {**counts, name: ops.sum(weights)}

    def sums(self, outputs: Batch, batch: Batch) -> Sums:
        """`{term: {metric: scalar}}` of a model's outputs, some of which may be labels.

        `mask_token` has the loss at [MASK] positions only. A kept token gives the answer away and a replaced one
        misleads, so the loss over all predictions says less about what the model has learned. For next tokens,
        `text_token` has the loss without special tokens, which the unigram does not know.
        """
        batch = {**outputs, **batch}
        metrics = {term.name: term.metrics(outputs[term.output], term.labels(batch)) for term in self._terms}
        sums = {}
        for term in self._terms:
            weights = term.weights(batch)
            sums[term.name] = {name: ops.sum(values * weights) for name, values in metrics[term.name].items()}
            if self._weights[term.name] != 1.0:
                sums[term.name]["loss"] *= self._weights[term.name]
        of_tokens = self._terms[0]
        if not of_tokens.predicts_tokens:
            return sums
        name, weights = self._unseen_tokens(batch)
        sums[name] = {"loss": ops.sum(metrics[of_tokens.name]["loss"] * weights)}
        if self.unigram_nats is not None:
            unigram = ops.take(self.unigram_nats, of_tokens.labels(batch), axis=0)
            sums[name]["unigram_loss"] = ops.sum(unigram * weights)
        return sums

    def _unseen_tokens(self, batch: Batch) -> tuple[str, Tensor]:
        """`mask_token` or `text_token`, and the weights of only the predictions at [MASK] or of text."""
        if "permutation_ranks" in batch:  # Predicted unseen, and never a special token.
            return "text_token", batch["masked_lm_weights"]
        if "masked_lm_positions" in batch:
            inputs = ops.take_along_axis(batch["input_word_ids"], batch["masked_lm_positions"], axis=1)
            return "mask_token", batch["masked_lm_weights"] * ops.cast(inputs == self.mask_id, "float32")
        labels, weights = self._terms[0].labels(batch), self._terms[0].weights(batch)
        is_special = ops.any(labels[..., None] == np.array(self.special_ids, "int32"), axis=-1)
        return "text_token", weights * ops.cast(ops.logical_not(is_special), "float32")
