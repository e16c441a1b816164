"""What a discriminator reads in place of some tokens, to tell which were replaced."""

from dataclasses import dataclass
from typing import Literal, get_args

from keras_bert.core.settings import Checked, Positive, PositiveShare

Maker = Literal["generator", "random", "shuffled"]
GENERATOR, RANDOM_TOKENS, SHUFFLED = get_args(Maker)
Sharing = Literal["disentangled", "shared"]
DISENTANGLED, SHARED = get_args(Sharing)


@dataclass
class ReplacementConfig(Checked):
    """Which tokens a discriminator reads in place of those that `masking` chooses.

    Attributes:
        made_by: `generator`: samples of a small masked LM that is trained with it (Clark et al. 2020, section 2);
            without a generator `random` pieces of the vocabulary, or the chosen tokens of the row, `shuffled`
            (Yamaguchi et al. 2021).
        generator_size: the generator's width, heads and feed-forward width as a share of the discriminator's.
        embeddings: the discriminator's are the generator's, `shared` (Clark et al. 2020, section 3.2), or
            `disentangled`: those plus a difference, through which alone the discriminator trains them (He et al. 2021,
            DeBERTaV3, section 3.2).
        weight: what the discriminator's loss is multiplied by beside the generator's.
    """

    made_by: Maker = "generator"
    generator_size: PositiveShare = 0.25
    embeddings: Sharing = "disentangled"
    weight: Positive[float] = 50.0

    @property
    def has_generator(self) -> bool:
        """Whether a generator is trained."""
        return self.made_by == GENERATOR
