"""A classifier's labels and problem type, as in Hugging Face's config.json."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.config.checks import require
from keras_bert.config.label_names import check_label_names, label_fields, label_names
from keras_bert.errors import UserError

SINGLE_LABEL, MULTI_LABEL, REGRESSION = PROBLEM_TYPES = (
    "single_label_classification", "multi_label_classification", "regression",
)  # fmt: skip

METRIC_NAMES = {
    SINGLE_LABEL: ("accuracy", "f1", "macro_f1", "matthews"),
    MULTI_LABEL: ("micro_f1", "macro_f1", "exact_match"),
    REGRESSION: ("pearson", "spearman"),
}


@dataclasses.dataclass(frozen=True)
class ClassificationConfig:
    """The head of a `BertForSequenceClassification`; a `BertConfig` describes its encoder.

    Attributes:
        labels: the labels' names in the order of the logits; for regression, a single name for the number.
        problem_type: one of `PROBLEM_TYPES`.

    Raises:
        ValueError: too few labels, a duplicate name, or an unknown problem type.
    """

    architecture: ClassVar[str] = "BertForSequenceClassification"
    labels: tuple[str, ...]
    problem_type: str = SINGLE_LABEL

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        require(
            self.problem_type in PROBLEM_TYPES, "problem_type", f"one of {', '.join(PROBLEM_TYPES)}", self.problem_type
        )
        check_label_names(self.labels)
        count = len(self.labels)
        fits = {SINGLE_LABEL: count > 1, MULTI_LABEL: count > 0, REGRESSION: count == 1}[self.problem_type]
        needed = {SINGLE_LABEL: "at least two labels", MULTI_LABEL: "at least one label", REGRESSION: "one label"}
        require(fits, "labels", f"{needed[self.problem_type]} for {self.problem_type}", self.labels)

    @property
    def num_labels(self) -> int:
        return len(self.labels)

    def to_fields(self) -> dict[str, Any]:
        """The fields for config.json."""
        return {
            "architectures": [self.architecture],
            **label_fields(self.labels),
            "problem_type": self.problem_type,
        }

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], num_outputs: int, path: str) -> "ClassificationConfig":
        """Reads config.json's fields. The defaults are transformers': LABEL_0 and so on; one label means regression.

        Args:
            fields: the content of config.json.
            num_outputs: the number of logits of the head in the weights file.
            path: the config's path, for messages.

        Raises:
            UserError: the fields contradict each other or the classifier's weights.
        """
        problem_type = fields.get("problem_type") or (REGRESSION if num_outputs == 1 else SINGLE_LABEL)
        try:
            return cls(label_names(fields, num_outputs, path), problem_type)
        except ValueError as error:
            raise UserError(f"{path}: {error}") from None
