"""The labels and layers of a tagger over frozen features, as in config.json."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.config.checks import require
from keras_bert.config.features import FEATURES
from keras_bert.config.label_names import label_fields, label_names
from keras_bert.config.reading import FIELD
from keras_bert.config.token_classification import TokenClassificationConfig
from keras_bert.errors import UserError


@dataclasses.dataclass(frozen=True)
class FeatureTaggingConfig(TokenClassificationConfig):
    """The head of a `BertFeatureTagger`; a `BertConfig` describes its encoder.

    Hugging Face has no class for it. config.json therefore calls the model a BertModel, which its encoder is, and
    describes the tagger in the field `keras_bert`.

    Attributes:
        labels: the labels' names in the order of the logits.
        features: one of `config.features.FEATURES`.
        lstm_size: units per direction of each LSTM.

    Raises:
        ValueError: no labels, a duplicate name, or another invalid value.
    """

    architecture: ClassVar[str] = "BertFeatureTagger"
    features: str
    lstm_size: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.features in FEATURES, "features", f"one of {', '.join(FEATURES)}", self.features)
        is_size = isinstance(self.lstm_size, int) and self.lstm_size > 0
        require(is_size, "lstm_size", "a whole number above 0", self.lstm_size)

    def to_fields(self) -> dict[str, Any]:
        """The fields for config.json."""
        own = {"features": self.features, "lstm_size": self.lstm_size}
        return {"architectures": ["BertModel"], **label_fields(self.labels), FIELD: own}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], num_outputs: int, path: str) -> "FeatureTaggingConfig":
        """Reads config.json's fields; arguments and errors as in `ClassificationConfig.from_fields`."""
        own = fields[FIELD]
        try:
            return cls(label_names(fields, num_outputs, path), own.get("features"), own.get("lstm_size"))
        except ValueError as error:
            raise UserError(f"{path}: {FIELD}.{error}") from None
