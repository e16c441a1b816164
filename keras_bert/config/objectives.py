"""What the rows of pretraining hold, which of their tokens are predicted, and how long they are in each phase."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from keras_bert.config.corruption import CorruptionConfig
from keras_bert.config.replacement import ReplacementConfig
from keras_bert.core.settings import Bounds, Checked, NotNegative, OneOf, Positive, PositiveShare, Share, require
from keras_bert.models.bert.config import DECODED, MASKED, PERMUTED, REPLACED, Tokens
from keras_bert.models.term import RELATED, Term, all_terms

NO_PAIR = "none"
Unit = Literal["token", "word", "ngram", "span", "phrase", "pmi"]
PMI: Unit = "pmi"


def _pairs() -> list[str]:
    return [*(term.name for term in all_terms() if term.pairs), NO_PAIR]


@dataclass
class ObjectiveConfig(Checked):
    """What a row contains, and what is predicted of it.

    Attributes:
        tokens: what is predicted. `masked`: masked tokens, from both sides (masked LM). `next`: every token from those
            before it, for a causal model (the left-to-right model of the paper's section 5.1). `both`: every token from
            those before it and, separately, from those after it, for an ELMo. `permuted`: some tokens in a random
            order, each from those before it in that order and from all that are not predicted, for an XLNet (Yang et
            al. 2019, section 2.2). `decoded`: what `corruption` says, from corrupted text, for a model with a decoder.
            `replaced`: which tokens `replacement` has replaced, for an ELECTRA (Clark et al. 2020).
        pair: how rows are made. `nsp`: segment pairs for next sentence prediction (paper, section 3.1, task 2, and
            appendix A.2). `sop`: pairs of consecutive segments, half of them swapped, for sentence order prediction
            (ALBERT, Lan et al. 2020, section 3.1). `related`: a sentence and a disturbed copy or a text that only looks
            like it, to prepare for tasks that compare texts. `none`: whole sentences, packed up to the sequence length.
        packing: whether packed rows end with their `document` or continue into the next (`full`): RoBERTa's
            DOC-SENTENCES and FULL-SENTENCES (Liu et al. 2019, section 4.2). `filled` rows may also end within a
            sentence, which leaves hardly any padding; they are validated on `full` rows, so that runs with either are
            measured on the same predictions.
        random_next_share: share of `nsp` pairs whose second segment is from another document.
        short_sequence_share: share of `nsp` and `sop` rows with a random length instead of the sequence length.
        span_boundary: predict each token of a span also from the two tokens next to the span (SpanBERT, Joshi et al.
            2020, section 3.2).
        auxiliary: names of terms of the loss that have no setting of their own (`models/objectives.py`).
        corruption: how the text that a decoder predicts from is corrupted.
        memory_length: how many tokens before a row an XLNet remembers, in training: row i of a batch continues row i of
            the batch before (Yang et al. 2019, section 2.4). 0 for independent rows, in a random order.
        replacement: what replaces the tokens that a discriminator has to find.
        match: with pair `related`, predict for every word whether the other text has it too.
        adapt_every: steps between updates of the tokens' weights in the masked LM's loss, which make well-predicted
            tokens count less (AMLM, Edman and Fraser 2025, who take 200). 0: all count alike.
        related_share: share of the rows with pair `related` that hold a pair; the others hold running text of one
            document, from which the masked LM goes on learning.
        random_positions: in training, begin each row that is shorter than the longest phase's at a random position,
            from which it still fits into that length (SHAPE, Kiyono et al. 2021), so that longer rows meet no untrained
            position.
    """

    tokens: Tokens = "masked"
    pair: Annotated[str, OneOf(_pairs)] = "nsp"
    packing: Literal["document", "full", "filled"] = "full"
    random_next_share: Share = 0.5
    short_sequence_share: Share = 0.1
    span_boundary: bool = False
    auxiliary: list[str] = field(default_factory=list)
    corruption: CorruptionConfig = field(default_factory=CorruptionConfig)
    memory_length: NotNegative[int] = 0
    replacement: ReplacementConfig = field(default_factory=ReplacementConfig)
    match: bool = False
    adapt_every: NotNegative[int] = 0
    related_share: PositiveShare = 1.0
    random_positions: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        decodes = self.tokens == DECODED
        require(not decodes or self.pairing is None, "pair", f"none for tokens {DECODED}", self.pair)
        # What follows the end of a text is never generated.
        needed = f"document for tokens {DECODED}, whose rows are a text each"
        require(not decodes or self.packing == "document", "packing", needed, self.packing)
        fits = decodes or self.corruption == CorruptionConfig()
        require(fits, "corruption", f"no value for tokens {self.tokens}, whose text is not corrupted", "settings")
        needed = f"0 for tokens {self.tokens}: only an XLNet, by tokens {PERMUTED}, is trained with a memory"
        require(self.tokens == PERMUTED or not self.memory_length, "memory_length", needed, self.memory_length)
        needed = f"0 for tokens {self.tokens}: only masked tokens are weighted"
        require(self.tokens == MASKED or not self.adapt_every, "adapt_every", needed, self.adapt_every)
        needed = f"1 for pair {self.pair}: only {RELATED} pairs take turns with running text"
        require(self.pairing == RELATED or self.related_share == 1, "related_share", needed, self.related_share)
        fits = self.tokens == REPLACED or self.replacement == ReplacementConfig()
        require(fits, "replacement", f"no value for tokens {self.tokens}, which replaces none", "settings")
        without_setting = [term.name for term in all_terms() if term.setting == Term.setting]
        needed = f"registered terms ({', '.join(without_setting) or 'there are none'})"
        require(set(self.auxiliary) <= set(without_setting), "auxiliary", needed, self.auxiliary)

    @property
    def masks_tokens(self) -> bool:
        """Whether `masking` says which tokens are predicted, and what replaces them."""
        return self.tokens in (MASKED, REPLACED)

    @property
    def trained(self) -> list[Term]:
        """The terms of the loss, the token head's first."""
        return [term for term in all_terms() if term.is_on(self)]

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of the terms of the loss, the token head's first."""
        return tuple(term.name for term in self.trained)

    @property
    def pairing(self) -> str | None:
        """How the segments of rows are paired; see `Term.pairs`. None for packed rows."""
        return next((term.pairs for term in self.trained if term.pairs), None)


@dataclass
class MaskingConfig(Checked):
    """Which positions the masked LM predicts, and what replaces their tokens (paper, section 3.1, task 1).

    With `objective.tokens: permuted` tokens are predicted in spans of one to five (Yang et al. 2019, section 2.3) and
    none is replaced: `share` is the paper's 1 / K, and only it, `validation_share` and `refresh` are used.

    Validation depends on neither `share` nor `unit`, and takes its random tokens from the vocabulary, so that runs are
    measured on the same predictions.

    Attributes:
        share: share of the tokens that are predicted.
        validation_share: share of the tokens that are predicted in validation.
        mask_token_share: share of the predicted tokens that become [MASK].
        random_token_share: share of the predicted tokens that become a random token; the rest stay as they are.
        unit: what is chosen at random until `share` is reached: a token, a whole word, an n-gram of words, a span of
            words, a labelled phrase or, for `pmi`, a collocation of the text (PMI-Masking, Levine et al. 2021) or a
            whole word outside of these.
        validation_unit: what is chosen at random in validation; see `unit`.
        random_from: whether random tokens come from the `vocabulary`, all pieces alike, or from the `unigram`
            frequencies of the training text.
        refresh: whether masks are drawn anew in each `epoch`, or `never`.
    """

    share: Share = 0.15
    validation_share: Share = 0.15
    mask_token_share: Share = 0.8
    random_token_share: Share = 0.1
    unit: Unit = "token"
    validation_unit: Unit = "token"
    random_from: Literal["vocabulary", "unigram"] = "vocabulary"
    refresh: Literal["epoch", "never"] = "epoch"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.mask_token_share + self.random_token_share <= 1.0,
            "random_token_share",
            f"at most 1 together with mask_token_share {self.mask_token_share}",
            self.random_token_share,
        )

    @property
    def units(self) -> set[str]:
        """The units of training and validation."""
        return {self.unit, self.validation_unit}


@dataclass
class PhaseConfig(Checked):
    """A phase of a run.

    Attributes:
        share: share of all steps, or of the run's time, that the phase takes.
        sequence_length: maximum tokens in a row, special tokens included.
        batch_size: rows per step.
        max_predictions_per_seq: maximum tokens predicted in a row, at most `sequence_length`.
        masking_share: replaces `masking.share` in this phase.
        tokens: `next` replaces `objective.tokens` in this phase: it predicts next tokens, under causal attention.
            Validation keeps to `objective.tokens`.
    """

    share: PositiveShare = 1.0
    sequence_length: Annotated[int, Bounds("at least 8", min=8)] = 128
    batch_size: Positive[int] = 256
    max_predictions_per_seq: Positive[int] = 20
    masking_share: Share | None = None
    tokens: Literal["next"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.max_predictions_per_seq <= self.sequence_length,
            "max_predictions_per_seq",
            f"1 to sequence_length ({self.sequence_length})",
            self.max_predictions_per_seq,
        )
