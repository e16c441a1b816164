"""What replaces the tokens that a discriminator has to find."""

from dataclasses import dataclass
from typing import Literal, get_args

from keras_bert.core.settings import Checked, Positive, PositiveShare

Maker = Literal["generator", "random", "shuffled"]
GENERATOR, RANDOM_TOKENS, SHUFFLED = get_args(Maker)
Sharing = Literal["disentangled", "shared"]
DISENTANGLED, SHARED = get_args(Sharing)


@dataclass
class ReplacementConfig(Checked):
    """Which tokens a discriminator reads instead of those that `masking` chooses.

    Attributes:
        made_by: `generator`: samples of a small masked LM that is trained alongside (Clark et al. 2020, section 2);
            `random`: random pieces of the vocabulary; `shuffled`: the row's own chosen tokens in another order (both
            without a generator, Yamaguchi et al. 2021).
        generator_size: the generator's width, heads and feed-forward width as a share of the discriminator's.
        embeddings: `shared`: the discriminator reads the generator's embeddings (Clark et al. 2020, section 3.2);
            `disentangled`: it adds a difference to them and trains only that (He et al. 2021, DeBERTaV3, section 3.2).
        weight: factor on the discriminator's loss, which is added to the generator's; not used without a generator.
    """

    made_by: Maker = "generator"
    generator_size: PositiveShare = 0.25
    embeddings: Sharing = "disentangled"
    weight: Positive[float] = 50.0

    @property
    def has_generator(self) -> bool:
        """Whether a generator is trained."""
        return self.made_by == GENERATOR
