"""How text is corrupted for a decoder to predict from what is left of it."""

from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from keras_bert.core.settings import Bounds, Checked, OpenShare, require

Corruption = Literal["masking", "deletion", "infilling", "sentences", "rotation", "fragment", "sentinels"]
MASKING, DELETION, INFILLING, SENTENCES, ROTATION, FRAGMENT, SENTINELS = get_args(Corruption)
# The papers' shares; BART's does not say which share it deletes. Other corruptions have none.
_SHARES = {MASKING: 0.15, DELETION: 0.15, INFILLING: 0.3, FRAGMENT: 0.5, SENTINELS: 0.15}


@dataclass
class CorruptionConfig(Checked):
    """What the encoder reads instead of the text, which decides what the decoder predicts.

    Attributes:
        kinds: one or more of BART's (Lewis et al. 2020, section 3.1), after which the decoder predicts the whole text:
            `masking` of tokens, `deletion` of tokens, `infilling`, which replaces a span with one [MASK], `sentences`
            in a random order, `rotation` of the text. Or `fragment`, as in MASS: the decoder predicts a fragment that
            is masked for the encoder (Song et al. 2019). Or `sentinels`, as in T5: the encoder reads sentinels instead
            of spans, and the decoder predicts the spans (Raffel et al. 2020, section 3.1.4).
        applied: whether each text gets `all` of BART's corruptions in `kinds`, in that order, or `one`, drawn for each
            text.
        share: share of the tokens that are masked, deleted or predicted; by default the paper's: 0.5 for `fragment`,
            0.3 for `infilling` and 0.15 for the others.
        span_length: mean length in tokens of the spans of `infilling`, some of which are empty (Poisson), and of
            `sentinels`, which never are.
    """

    kinds: list[Corruption] = field(default_factory=lambda: [INFILLING, SENTENCES])
    applied: Literal["all", "one"] = "all"
    share: OpenShare | None = None
    span_length: Annotated[float, Bounds("at least 1", min=1)] = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.kinds, "kinds", "at least one corruption", self.kinds)
        require(len({*self.kinds}) == len(self.kinds), "kinds", "each corruption once", self.kinds)
        alone = [kind for kind in self.kinds if kind in (FRAGMENT, SENTINELS)]
        needed = f"{alone[0]} alone, whose decoder does not predict the whole text" if alone else ""
        require(not alone or len(self.kinds) == 1, "kinds", needed, self.kinds)
        named = ", ".join(self.kinds)
        has_share = any(kind in _SHARES for kind in self.kinds)
        require(has_share or self.share is None, "share", f"no value for {named}, which has no share", self.share)
        has_spans = INFILLING in self.kinds or SENTINELS in self.kinds
        fits = has_spans or self.span_length == CorruptionConfig.span_length
        require(fits, "span_length", f"no value for {named}, which has no spans", self.span_length)

    def share_of(self, kind: str) -> float:
        """The share of the tokens that a corruption applies to."""
        return self.share if self.share is not None else _SHARES[kind]
