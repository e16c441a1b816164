"""What the weights of a new model begin as."""

import dataclasses
from dataclasses import dataclass

from keras_bert.config.checks import require, require_positive
from keras_bert.errors import UserError

RANDOM = "random"
CORPUS, SINUSOIDAL, MIMETIC = "corpus", "sinusoidal", "mimetic"
ZERO, UNIGRAM = "zero", "unigram"


@dataclass
class InitializationConfig:
    """First values of the weights; the defaults are the paper's, normal with `model.initializer_range`.

    `word_embeddings` "corpus" begins them as vectors of the training text's own counts, so that pieces that can stand
    in the same place begin alike. `position_embeddings` "sinusoidal" begins them as in Vaswani et al. 2017, section
    3.5. `attention` "mimetic" begins queries and keys so that equal vectors attend to each other (Trockman and Kolter
    2023). `decoder_bias` "unigram" begins the masked LM's output bias as the log of how frequent each piece is.

    `sample_tokens` of the text are counted, and the neighbours of a piece up to `window` pieces away.
    """

    word_embeddings: str = RANDOM
    position_embeddings: str = RANDOM
    attention: str = RANDOM
    decoder_bias: str = ZERO
    sample_tokens: int = 20_000_000
    window: int = 2

    def __post_init__(self):
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


# What a recipe may say in one word.
NAMED = {
    "paper": InitializationConfig(),
    "corpus": InitializationConfig(CORPUS, SINUSOIDAL, MIMETIC, UNIGRAM),
}


def named_initialization(values: str | dict | None) -> dict | None:
    """The mapping of fields that a recipe's `initialization` stands for: a name, or the fields themselves."""
    if not isinstance(values, str):
        return values
    if values not in NAMED:
        raise UserError(f"initialization: needs {' or '.join(NAMED)}, or its settings. Received: {values!r}.")
    return dataclasses.asdict(NAMED[values])
