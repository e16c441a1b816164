"""The initial weights of a new model, and the weights that fine-tuning replaces."""

import dataclasses
from dataclasses import dataclass

from keras_bert.core.errors import UserError
from keras_bert.core.settings import require, require_positive

RANDOM = "random"
CORPUS, SINUSOIDAL, MIMETIC = "corpus", "sinusoidal", "mimetic"
ZERO, UNIGRAM = "zero", "unigram"


@dataclass
class ReplacedWeightsConfig:
    """Weights that fine-tuning replaces in the model it starts from, by those of a new model; null keeps them.

    A small model of your own may have lost what comparing two texts needs: that equal words attend to each other.

    Attributes:
        position_embeddings: `sinusoidal` puts sines and cosines in their place (Vaswani et al. 2017, section 3.5).
        attention: `mimetic` makes equal vectors attend to each other (Trockman and Kolter 2023).
    """

    position_embeddings: str | None = None
    attention: str | None = None

    def __post_init__(self) -> None:
        for key, choice in (("position_embeddings", SINUSOIDAL), ("attention", MIMETIC)):
            require(getattr(self, key) in (None, choice), key, choice, getattr(self, key))

    def as_initialization(self) -> "InitializationConfig":
        """The same as an `InitializationConfig`, in which `random` stands for what is kept."""
        return InitializationConfig(
            position_embeddings=self.position_embeddings or RANDOM, attention=self.attention or RANDOM
        )


@dataclass
class InitializationConfig:
    """The initial weights. By default they are the paper's, normal with `model.initializer_range`.

    Attributes:
        word_embeddings: `corpus` computes them from co-occurrence counts in the training text, so that interchangeable
            pieces start out similar.
        position_embeddings: `sinusoidal` starts with sines and cosines (Vaswani et al. 2017, section 3.5).
        attention: `mimetic` sets queries and keys so that equal vectors attend to each other (Trockman and Kolter
            2023).
        decoder_bias: `unigram` sets the masked LM's output bias to the log frequency of each piece.
        sample_tokens: tokens of the text over which the counts are taken.
        window: how many pieces away a neighbour may be to count.
    """

    word_embeddings: str = RANDOM
    position_embeddings: str = RANDOM
    attention: str = RANDOM
    decoder_bias: str = ZERO
    sample_tokens: int = 20_000_000
    window: int = 2

    def __post_init__(self) -> None:
        for key, choices in (
            ("word_embeddings", (RANDOM, CORPUS)),
            ("position_embeddings", (RANDOM, SINUSOIDAL)),
            ("attention", (RANDOM, MIMETIC)),
            ("decoder_bias", (ZERO, UNIGRAM)),
        ):
            require(getattr(self, key) in choices, key, f"one of {', '.join(choices)}", getattr(self, key))
        require_positive(self, "sample_tokens", "window")

    @property
    def needs_text(self) -> bool:
        """Whether the training text has to be counted first."""
        return self.word_embeddings == CORPUS or self.decoder_bias == UNIGRAM


# What a recipe may ask for by name.
NAMED = {
    "paper": InitializationConfig(),
    "corpus": InitializationConfig(CORPUS, SINUSOIDAL, MIMETIC, UNIGRAM),
}


def named_initialization(values: str | dict | None) -> dict | None:
    """The fields of a recipe's `initialization`, which is a name or the fields themselves."""
    if not isinstance(values, str):
        return values
    if values not in NAMED:
        raise UserError(f"initialization: needs {' or '.join(NAMED)}, or a mapping of settings. Received: {values!r}.")
    return dataclasses.asdict(NAMED[values])
