"""The heads that label words: on a trained encoder, over features of a frozen one, or a conditional random field."""

import dataclasses
from typing import ClassVar

from keras_bert.config.features import Features
from keras_bert.config.finetuning import LearnedScheme
from keras_bert.core.settings import Positive, require
from keras_bert.tasks.head import LabelledHead


@dataclasses.dataclass(frozen=True)
class TokenClassificationConfig(LabelledHead):
    """The head of a `BertForTokenClassification`.

    Class attributes:
        has_crf: whether the labels of a sentence are decoded together.

    Example:
        keras_bert.TokenClassificationConfig(("O", "B-PER", "I-PER")).labels
    """

    architecture: ClassVar[str] = "BertForTokenClassification"
    has_crf: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.labels, "labels", "at least one label", self.labels)


@dataclasses.dataclass(frozen=True)
class FeatureTaggingConfig(TokenClassificationConfig):
    """The head of a `BertFeatureTagger`, for which transformers has no class.

    Attributes:
        features: which hidden states it reads; see the setting `features.kind`.
        lstm_size: units per direction of each LSTM.
    """

    architecture: ClassVar[str] = "BertFeatureTagger"
    own_settings: ClassVar[tuple[str, ...]] = ("features", "lstm_size")
    features: Features
    lstm_size: Positive[int]


@dataclasses.dataclass(frozen=True)
class CrfTaggingConfig(TokenClassificationConfig):
    """The head of a `BertCrfTagger`, for which transformers has no class.

    Attributes:
        labels: the labels' names in the order of the emissions.
        learned_scheme: how labels mark entities, `bio` or `bioes`; transitions that it forbids are impossible. None for
            labels that mark no entities.
    """

    architecture: ClassVar[str] = "BertCrfTagger"
    has_crf: ClassVar[bool] = True
    own_settings: ClassVar[tuple[str, ...]] = ("learned_scheme",)
    learned_scheme: LearnedScheme | None = None
