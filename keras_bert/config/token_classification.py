"""What a tagger answers: the labels of its tokens, as Hugging Face's config.json says it."""

import dataclasses
from typing import ClassVar

from keras_bert.config.checks import require
from keras_bert.config.label_names import check_label_names, label_fields, label_names
from keras_bert.errors import UserError


@dataclasses.dataclass(frozen=True)
class TokenClassificationConfig:
    """The head of a `BertForTokenClassification`, beside the `BertConfig` of its encoder.

    Attributes:
        labels: the labels' names in the order of the logits.

    Raises:
        ValueError: no label, or two of one name.
    """

    architecture: ClassVar[str] = "BertForTokenClassification"
    labels: tuple

    def __post_init__(self):
        object.__setattr__(self, "labels", tuple(self.labels))
        require(self.labels, "labels", "a label or more", self.labels)
        check_label_names(self.labels)

    @property
    def num_labels(self):
        return len(self.labels)

    def to_fields(self):
        """What config.json says of it."""
        return {"architectures": [self.architecture], **label_fields(self.labels)}

    @classmethod
    def from_fields(cls, fields, num_outputs, path):
        """Of what a config says; the arguments and errors are those of `ClassificationConfig.from_fields`."""
        try:
            return cls(label_names(fields, num_outputs, path))
        except ValueError as error:
            raise UserError(f"{path}: {error}") from None
