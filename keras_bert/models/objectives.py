"""The terms of the pretraining loss, one record each; no other file knows their names. See `models.term.Term`.

The heads are layers in `layers/heads.py`. Keras takes seconds to import, and recipes are checked without it, so a
record imports it where it computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from keras_bert.core.settings import require
from keras_bert.models.bert.config import BOTH, DECODED, MASKED, NEXT, PERMUTED, REPLACED, BertConfig
from keras_bert.models.tensor_names import TensorName, dense, layer_norm, own_tensor
from keras_bert.models.term import RANDOM_NEXT, RELATED, RUNNING_TEXT, SWAPPED, Rows, Term

if TYPE_CHECKING:
    import keras

    from keras_bert.config.objectives import MaskingConfig, ObjectiveConfig
    from keras_bert.layers.tensors import Batch, Tensor
    from keras_bert.models.encoder_with_heads import EncoderWithHeads


class ClassTerm(Term):
    """A term that predicts classes, by cross-entropy in nats."""

    def metrics(self, logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
        from keras_bert.layers.heads import cross_entropy

        return cross_entropy(logits, labels)


class MaskedTokens(ClassTerm):
    """Masked LM (paper, section 3.1, task 1).

    A phase of a run may predict next tokens instead, under the same names of figures; the batch says which it is.
    """

    name, title, heading, sentence = "mlm", "masked LM", "masked LM", "masked LM"
    card_metrics = ("loss", "accuracy")
    setting = "objective.tokens"
    has_head = needs_both_sides = reads_states = False
    predicts_tokens = predicts_vocabulary = True
    output, label, label_weights = "mlm_logits", "masked_lm_ids", "masked_lm_weights"

    def is_on(self, objective: ObjectiveConfig) -> bool:
        return objective.tokens == MASKED or objective.tokens == REPLACED and objective.replacement.has_generator

    def labels(self, batch: Batch) -> Tensor:
        return batch["next_token_ids"] if "next_token_ids" in batch else super().labels(batch)

    def weights(self, batch: Batch) -> Tensor:
        return batch["next_token_weights"] if "next_token_ids" in batch else super().weights(batch)


class NextTokens(MaskedTokens):
    """The left-to-right LM of the paper's section 5.1, and one half of an ELMo's."""

    name, title, heading, sentence = "lm", "next token", "next token", "next tokens, left to right"

    def is_on(self, objective: ObjectiveConfig) -> bool:
        return objective.tokens in (NEXT, BOTH)


class DecodedTokens(MaskedTokens):
    """The next tokens of a text, or of its missing parts, that a decoder predicts from the corrupted text."""

    name, title, heading, sentence = "decoded", "decoded tokens", "decoded", "restoring corrupted text"
    output, label, label_weights = "logits", "target_ids", "target_weights"

    def is_on(self, objective: ObjectiveConfig) -> bool:
        return objective.tokens == DECODED


class PermutedTokens(MaskedTokens):
    """XLNet's permutation language model (Yang et al. 2019, section 2.2), which predicts 1 in K tokens."""

    name, title, heading, sentence = "plm", "permuted token", "perm. token", "permutation language modelling"

    def is_on(self, objective: ObjectiveConfig) -> bool:
        return objective.tokens == PERMUTED

    def unfreeze(self, model: EncoderWithHeads) -> None:
        model.encoder.mask_embedding.trainable = True


class PreviousTokens(ClassTerm):
    """The right-to-left half of an ELMo's LM, with the same head."""

    name, title, heading, sentence = "previous", "previous tokens", "prev. token", "previous tokens, right to left"
    card_metrics = ("loss", "accuracy")
    setting = "objective.tokens"
    has_head = needs_both_sides = False
    predicts_vocabulary = True
    label, label_weights = "previous_token_ids", "previous_token_weights"

    def is_on(self, objective: ObjectiveConfig) -> bool:
        return objective.tokens == BOTH


class _PairTerm(ClassTerm):
    """Two classes of the pooled vector: whether a row's segments are as in the text (0) or not (1)."""

    setting, off, pools = "objective.pair", "none", True
    reads_states = False

    def is_on(self, objective: ObjectiveConfig) -> bool:
        return objective.pair == self.name

    def features(self, rows: Rows) -> Mapping[str, Tensor]:
        return {self.label: rows.pair_labels}


class NextSentence(_PairTerm):
    """Next sentence prediction (paper, section 3.1, task 2): B follows A (0) or is from another document (1)."""

    name, title, heading, sentence = "nsp", "next sentence", "next sent.", "next sentence prediction"
    argument, label = "next_sentence", "next_sentence_labels"
    pairs, zero_label = RANDOM_NEXT, "with the next sentence"

    def make_head(self, model: EncoderWithHeads) -> keras.layers.Layer:
        from keras_bert.layers.heads import NextSentenceHead

        config = model.config
        return NextSentenceHead(config.hidden_size, config.initializer_range, dtype=model.dtype_policy, name=self.head)

    def tensors(self) -> tuple[TensorName, ...]:
        return dense(f"{self.head}.classifier", "keras_bert.next_sentence.classifier")


class SentenceOrder(_PairTerm):
    """Sentence order prediction (ALBERT, Lan et al. 2020, section 3.1): whether the segments are swapped (1)."""

    name, title, heading, sentence = "sop", "sentence order", "sent. order", "sentence order prediction"
    argument, label = "sentence_order", "sentence_order_labels"
    pairs, zero_label = SWAPPED, "in order"

    def make_head(self, model: EncoderWithHeads) -> keras.layers.Layer:
        # ALBERT's dropout, whatever the encoder's.
        return model.make_classifier(2, self.head, dropout_prob=0.1)

    def tensors(self) -> tuple[TensorName, ...]:
        return dense(f"{self.head}.dense", "keras_bert.sop_classifier")


class Related(_PairTerm):
    """Whether two texts that share many words are related (0) or only look alike (1).

    Rows of running text do not count. The model's folder leaves out the head.
    """

    name, title, heading, sentence = "related", "related texts", "related", "telling related texts apart"
    label, pairs, zero_label = "related_labels", RELATED, "related"

    def labels(self, batch: Batch) -> Tensor:
        from keras import ops

        return ops.minimum(super().labels(batch), 1)

    def weights(self, batch: Batch) -> Tensor:
        from keras import ops

        return super().weights(batch) * ops.cast(batch[self.label] != RUNNING_TEXT, "float32")

    def make_head(self, model: EncoderWithHeads) -> keras.layers.Layer:
        return model.make_classifier(2, self.head)


class Match(ClassTerm):
    """Whether each word, at each of its pieces, is in the other text of the row too (1) or not (0).

    The model's folder leaves out the head.
    """

    name, title, heading, sentence = "match", "matching words", "match", "matching the words of two texts"
    setting, off = "objective.match", "false"
    label, label_weights = "match_labels", "match_weights"

    def is_on(self, objective: ObjectiveConfig) -> bool:
        return objective.match

    def check(self, objective: ObjectiveConfig, masking: MaskingConfig) -> None:
        pair = objective.pair
        require(
            pair == Related.name, self.setting, f"objective.pair {Related.name}", f"true with objective.pair {pair}"
        )

    def features(self, rows: Rows) -> Mapping[str, Tensor]:
        from keras import ops

        return {
            self.label: ops.maximum(rows.shared, 0),
            self.label_weights: ops.cast(ops.greater_equal(rows.shared, 0), "float32"),
        }

    def make_head(self, model: EncoderWithHeads) -> keras.layers.Layer:
        return model.make_classifier(2, self.head)

    def logits(
        self, head: keras.layers.Layer, encoded: Mapping[str, Tensor], inputs: Batch, training: bool
    ) -> Tensor | None:
        return head(encoded["sequence_output"], training=training)


class SpanBoundary(ClassTerm):
    """SpanBERT's boundary objective (Joshi et al. 2020, section 3.2): the tokens of a span from those next to it."""

    name, title, heading, sentence = "sbo", "span boundary", "boundary", "the span boundary objective"
    setting, off, argument = "objective.span_boundary", "false", "span_boundary"
    predicts_vocabulary = True
    label, label_weights = "masked_lm_ids", "masked_lm_weights"

    def is_on(self, objective: ObjectiveConfig) -> bool:
        return objective.span_boundary

    def check(self, objective: ObjectiveConfig, masking: MaskingConfig) -> None:
        pair = objective.pair
        require(pair == "none", self.setting, "objective.pair none", f"true with objective.pair {pair}")
        require(masking.unit == "span", "masking.unit", f"span for {self.setting}", masking.unit)

    def make_head(self, model: EncoderWithHeads) -> keras.layers.Layer:
        from keras_bert.layers.heads import SpanBoundaryHead

        config = model.config
        return SpanBoundaryHead(
            config.vocab_size,
            config.lm_width,
            config.hidden_act,
            config.initializer_range,
            config.layer_norm_eps,
            embedding_size=config.embedding_width,
            dtype=model.dtype_policy,
            name=self.head,
        )

    def tensors(self) -> tuple[TensorName, ...]:
        names: list[TensorName] = []
        for number in (0, 1):
            names += dense(f"{self.head}.denses.{number}", f"keras_bert.span_boundary.dense_{number}")
            names += layer_norm(f"{self.head}.layer_norms.{number}", f"keras_bert.span_boundary.LayerNorm_{number}")
        for name in ("position_embeddings", "bias"):
            names.append(own_tensor(f"{self.head}.{name}", f"span_boundary.{name}"))
        return tuple(names)

    def logits(
        self, head: keras.layers.Layer, encoded: Mapping[str, Tensor], inputs: Batch, training: bool
    ) -> Tensor | None:
        positions = inputs.get("masked_lm_positions")
        return None if positions is None else head(encoded["sequence_output"], encoded["word_embeddings"], positions)

    def weights(self, batch: Batch) -> Tensor:
        """As in SpanBERT's code, a span's tokens beyond the last position embedding do not count."""
        from keras import ops

        from keras_bert.layers.heads import MOST_PLACES, span_places

        has_embedding = span_places(batch["masked_lm_positions"]).place < MOST_PLACES
        return super().weights(batch) * ops.cast(has_embedding, "float32")

    def flops(self, config: BertConfig, predictions: int) -> int:
        """P · (2·(2·H + 200)·H + 2·H·E + 2·E·V): two dense layers and the decoder, at P predictions."""
        from keras_bert.layers.heads import PLACE_SIZE

        H, E, V = config.hidden_size, config.embedding_width, config.vocab_size
        return predictions * (2 * (2 * H + PLACE_SIZE) * H + 2 * H * E + 2 * E * V)


class ReplacedTokens(Term):
    """Whether each token, [CLS] and [SEP] too, differs from the text (ELECTRA, Clark et al. 2020, section 2).

    The model itself replaces tokens when it reads the batch, so its outputs hold the labels.
    """

    name, title, heading, sentence = "rtd", "replaced token", "replaced", "replaced token detection"
    card_metrics = ("accuracy", "majority")
    setting = "objective.tokens"
    label = "is_replaced"
    has_head = False  # In a `BertForPreTraining`; an `ElectraForPreTraining` always has it.

    def is_on(self, objective: ObjectiveConfig) -> bool:
        return objective.tokens == REPLACED

    def weight_in(self, objective: ObjectiveConfig) -> float:
        return objective.replacement.weight if objective.replacement.has_generator else self.weight

    def check(self, objective: ObjectiveConfig, masking: MaskingConfig) -> None:
        for term in objective.trained:
            off = f"{term.off} with objective.tokens {REPLACED}, which excludes this term"
            require(term is self or term.predicts_tokens, term.setting, off, term.name)

    def weights(self, batch: Batch) -> Tensor:
        from keras import ops

        return ops.cast(batch["input_mask"], "float32") * super().weights(batch)[:, None]

    def metrics(self, logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
        from keras_bert.layers.heads import binary_cross_entropy

        return binary_cross_entropy(logits, labels)


TERMS = (
    MaskedTokens(),
    NextTokens(),
    DecodedTokens(),
    PermutedTokens(),
    PreviousTokens(),
    NextSentence(),
    SentenceOrder(),
    Related(),
    Match(),
    SpanBoundary(),
    ReplacedTokens(),
)
PAPERS_TERMS = ("mlm", "nsp")  # BERT's own.
