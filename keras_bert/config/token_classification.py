"""A tagger's labels, as in Hugging Face's config.json."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.config.checks import require
from keras_bert.config.label_names import check_label_names, label_fields, label_names
from keras_bert.errors import UserError


@dataclasses.dataclass(frozen=True)
class TokenClassificationConfig:
    """The head of a `BertForTokenClassification`; a `BertConfig` describes its encoder.

    Attributes:
        labels: the labels' names in the order of the logits.

    Raises:
        ValueError: no labels, or a duplicate name.
    """

    architecture: ClassVar[str] = "BertForTokenClassification"
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        require(self.labels, "labels", "at least one label", self.labels)
        check_label_names(self.labels)

    @property
    def num_labels(self) -> int:
        return len(self.labels)

    def to_fields(self) -> dict[str, Any]:
        """The fields for config.json."""
        return {"architectures": [self.architecture], **label_fields(self.labels)}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], num_outputs: int, path: str) -> "TokenClassificationConfig":
        """Reads config.json's fields; arguments and errors as in `ClassificationConfig.from_fields`."""
        try:
            return cls(label_names(fields, num_outputs, path))
        except ValueError as error:
            raise UserError(f"{path}: {error}") from None
