"""The initial weights of a new model, and the weights that fine-tuning replaces."""

import dataclasses
from dataclasses import dataclass
from typing import Literal

from keras_bert.core.errors import UserError
from keras_bert.core.settings import Checked, Positive
from keras_bert.models.kind import ModelKind, with_article

RANDOM = "random"
CORPUS, SINUSOIDAL, MIMETIC = "corpus", "sinusoidal", "mimetic"
ZERO, UNIGRAM = "zero", "unigram"


@dataclass
class ReplacedWeightsConfig(Checked):
    """Weights of the model to start from that fine-tuning replaces with new ones; null keeps them.

    A small model of your own may have lost what comparing two texts needs: that equal words attend to each other.

    Attributes:
        position_embeddings: `sinusoidal` replaces them with sines and cosines (Vaswani et al. 2017, section 3.5).
        attention: `mimetic` makes equal vectors attend to each other (Trockman and Kolter 2023).
    """

    position_embeddings: Literal["sinusoidal"] | None = None
    attention: Literal["mimetic"] | None = None

    def as_initialization(self) -> "InitializationConfig":
        """These settings as an `InitializationConfig`, in which `random` stands for weights that are kept."""
        return InitializationConfig(
            position_embeddings=self.position_embeddings or "random", attention=self.attention or "random"
        )


@dataclass
class InitializationConfig(Checked):
    """The initial weights. By default they are the paper's, normal with `model.initializer_range`.

    A run with `init` starts from that model's weights instead, unless `replaces` is set.

    Attributes:
        word_embeddings: `corpus` computes them from co-occurrence counts in the training text, so that interchangeable
            pieces start out similar.
        position_embeddings: `sinusoidal` starts with sines and cosines (Vaswani et al. 2017, section 3.5).
        attention: `mimetic` sets queries and keys so that equal vectors attend to each other (Trockman and Kolter
            2023).
        decoder_bias: `unigram` sets the masked LM's output bias to the log frequency of each piece.
        sample_tokens: how many tokens of the text to count.
        window: how many pieces away a neighbour may be and still count.
        replaces: with `init`, whether the weights set here, other than `random` and `zero`, replace that model's.
    """

    word_embeddings: Literal["random", "corpus"] = "random"
    position_embeddings: Literal["random", "sinusoidal"] = "random"
    attention: Literal["random", "mimetic"] = "random"
    decoder_bias: Literal["zero", "unigram"] = "zero"
    sample_tokens: Positive[int] = 20_000_000
    window: Positive[int] = 2
    replaces: bool = False

    @property
    def needs_text(self) -> bool:
        """Whether the training text has to be counted first."""
        return self.word_embeddings == CORPUS or self.decoder_bias == UNIGRAM

    def require_for(self, kind: ModelKind) -> None:
        """Raises `UserError` if a kind of model has no place for one of these weights."""
        for setting, default, has in (
            ("position_embeddings", RANDOM, kind.has_positions),
            ("attention", RANDOM, kind.attends),
            ("decoder_bias", ZERO, not kind.decodes),  # With a decoder, the output bias is not trained.
        ):
            if not has and (chosen := getattr(self, setting)) != default:
                needed = f"{default} for {with_article(kind.title)}"
                raise UserError(f"initialization.{setting}: needs {needed}. Received: {chosen}. Leave it out.")


# What a recipe may ask for by name.
NAMED = {"paper": InitializationConfig(), "corpus": InitializationConfig("corpus", "sinusoidal", "mimetic", "unigram")}


def named_initialization(values: str | dict | None) -> dict | None:
    """The fields of a recipe's `initialization`, which is a name or the fields themselves."""
    if not isinstance(values, str):
        return values
    if values not in NAMED:
        raise UserError(f"initialization: needs {' or '.join(NAMED)}, or a mapping of settings. Received: {values!r}.")
    return dataclasses.asdict(NAMED[values])
