"""Kinds of noise in texts, and how a setting such as `typo=0.3` names one."""

from dataclasses import dataclass, field
from typing import NamedTuple

from keras_bert.config.checks import require, require_positive

# The share of its units that each kind changes if the setting gives none.
WORDS, BLANKS, CHARACTERS = "words", "blanks", "Chinese characters"
KINDS = {
    "typo": (WORDS, 0.3),
    "swap": (WORDS, 0.3),
    "case": (WORDS, 0.3),
    "homoglyph": (WORDS, 0.3),
    "addspace": (WORDS, 0.3),
    "nospace": (BLANKS, 1.0),
    "zh-shape": (CHARACTERS, 0.1),
    "zh-sound": (CHARACTERS, 0.1),
    "zh-drop": (CHARACTERS, 0.1),
    "zh-double": (CHARACTERS, 0.1),
}


class NoiseSetting(NamedTuple):
    """A kind of noise, one of `KINDS`, and the share of its units to change, above 0 and at most 1."""

    kind: str
    share: float


def noise_setting(text: str) -> NoiseSetting:
    """Reads `KIND` or `KIND=SHARE`. Raises `ValueError` for any other text."""
    kind, has_share, value = text.partition("=")
    try:
        share = float(value) if has_share else KINDS[kind][1] if kind in KINDS else 0.0
    except ValueError:
        share = 0.0
    needed = f"KIND or KIND=SHARE, a kind of {', '.join(KINDS)} and a share above 0 and at most 1"
    require(kind in KINDS and 0.0 < share <= 1.0, "noise", needed, text)
    return NoiseSetting(kind, share)


@dataclass
class NoiseConfig:
    """Training also on noisy copies of the examples: `copies` for each of `kinds`, such as `typo=0.3`.

    An epoch then has 1 + kinds x copies times as many examples.
    """

    kinds: list[str] = field(default_factory=list)
    copies: int = 1

    def __post_init__(self) -> None:
        for kind in self.kinds:
            noise_setting(kind)
        require_positive(self, "copies")
