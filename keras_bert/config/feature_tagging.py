"""What a tagger over frozen features answers and what it is made of, as config.json says it."""

import dataclasses
from typing import ClassVar

from keras_bert.config.checks import require
from keras_bert.config.features import FEATURES
from keras_bert.config.label_names import label_fields, label_names
from keras_bert.config.reading import FIELD
from keras_bert.config.token_classification import TokenClassificationConfig
from keras_bert.errors import UserError


@dataclasses.dataclass(frozen=True)
class FeatureTaggingConfig(TokenClassificationConfig):
    """The head of a `BertFeatureTagger`, beside the `BertConfig` of its encoder.

    Hugging Face has no class for it, so config.json calls the model a BertModel, which it is but for the tagger, and
    tells the rest in the field `keras_bert`.

    Attributes:
        labels: the labels' names in the order of the logits.
        features: one of `config.features.FEATURES`.
        lstm_size: units of each direction of each LSTM.

    Raises:
        ValueError: no label, two of one name, or other values that cannot be.
    """

    architecture: ClassVar[str] = "BertFeatureTagger"
    features: str
    lstm_size: int

    def __post_init__(self):
        super().__post_init__()
        require(self.features in FEATURES, "features", f"one of {', '.join(FEATURES)}", self.features)
        is_size = isinstance(self.lstm_size, int) and self.lstm_size > 0
        require(is_size, "lstm_size", "a whole number above 0", self.lstm_size)

    def to_fields(self):
        """What config.json says of it."""
        own = {"features": self.features, "lstm_size": self.lstm_size}
        return {"architectures": ["BertModel"], **label_fields(self.labels), FIELD: own}

    @classmethod
    def from_fields(cls, fields, num_outputs, path):
        """Of what a config says; the arguments and errors are those of `ClassificationConfig.from_fields`."""
        said = fields[FIELD]
        try:
            return cls(label_names(fields, num_outputs, path), said.get("features"), said.get("lstm_size"))
        except ValueError as error:
            raise UserError(f"{path}: {FIELD}.{error}") from None
