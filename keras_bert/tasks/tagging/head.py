"""The heads that label words: on a trained encoder, over features of a frozen one, or a conditional random field."""

import dataclasses
from typing import ClassVar

from keras_bert.config.features import FEATURES
from keras_bert.config.finetuning import LEARNED_SCHEMES
from keras_bert.core.settings import require
from keras_bert.tasks.head import LabelledHead


@dataclasses.dataclass(frozen=True)
class TokenClassificationConfig(LabelledHead):
    """The head of a `BertForTokenClassification`."""

    architecture: ClassVar[str] = "BertForTokenClassification"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.labels, "labels", "at least one label", self.labels)


@dataclasses.dataclass(frozen=True)
class FeatureTaggingConfig(TokenClassificationConfig):
    """The head of a `BertFeatureTagger`, for which transformers has no class.

    Attributes:
        features: one of `config.features.FEATURES`.
        lstm_size: units per direction of each LSTM.
    """

    architecture: ClassVar[str] = "BertFeatureTagger"
    own_settings: ClassVar[tuple[str, ...]] = ("features", "lstm_size")
    features: str
    lstm_size: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.features in FEATURES, "features", f"one of {', '.join(FEATURES)}", self.features)
        is_size = isinstance(self.lstm_size, int) and self.lstm_size > 0
        require(is_size, "lstm_size", "a whole number above 0", self.lstm_size)


@dataclasses.dataclass(frozen=True)
class CrfTaggingConfig(TokenClassificationConfig):
    """The head of a `BertCrfTagger`, for which transformers has no class.

    Attributes:
        labels: the labels' names in the order of the emissions.
        learned_scheme: one of `LEARNED_SCHEMES`, whose forbidden transitions are impossible; None for labels that mark
            no entities.
    """

    architecture: ClassVar[str] = "BertCrfTagger"
    own_settings: ClassVar[tuple[str, ...]] = ("learned_scheme",)
    learned_scheme: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        known = (None, *LEARNED_SCHEMES)
        require(self.learned_scheme in known, "learned_scheme", f"one of {known}", self.learned_scheme)
