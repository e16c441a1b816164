"""What a classifier answers: its labels and the kind of its task, as Hugging Face's config.json says it."""

import dataclasses
from typing import ClassVar

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
    """The head of a `BertForSequenceClassification`, beside the `BertConfig` of its encoder.

    Attributes:
        labels: the labels' names in the order of the logits; for regression the one name of the number.
        problem_type: one of `PROBLEM_TYPES`.

    Raises:
        ValueError: too few labels, two of one name, or an unknown problem type.
    """

    architecture: ClassVar[str] = "BertForSequenceClassification"
    labels: tuple
    problem_type: str = SINGLE_LABEL

    def __post_init__(self):
        object.__setattr__(self, "labels", tuple(self.labels))
        require(
            self.problem_type in PROBLEM_TYPES, "problem_type", f"one of {', '.join(PROBLEM_TYPES)}", self.problem_type
        )
        check_label_names(self.labels)
        count = len(self.labels)
        fits = {SINGLE_LABEL: count > 1, MULTI_LABEL: count > 0, REGRESSION: count == 1}[self.problem_type]
        needed = {SINGLE_LABEL: "two labels or more", MULTI_LABEL: "a label or more", REGRESSION: "one label"}
        require(fits, "labels", f"{needed[self.problem_type]} for {self.problem_type}", self.labels)

    @property
    def num_labels(self):
        return len(self.labels)

    def to_fields(self):
        """What config.json says of it."""
        return {
            "architectures": [self.architecture],
            **label_fields(self.labels),
            "problem_type": self.problem_type,
        }

    @classmethod
    def from_fields(cls, fields, num_outputs, path):
        """Of what a config says, by transformers' defaults: LABEL_0 and so on, and one label means regression.

        Args:
            fields: the config's content.
            num_outputs: how many logits the head in the file has.
            path: the config, for messages.

        Raises:
            UserError: the fields do not fit together, or not to the classifier.
        """
        problem_type = fields.get("problem_type") or (REGRESSION if num_outputs == 1 else SINGLE_LABEL)
        try:
            return cls(label_names(fields, num_outputs, path), problem_type)
        except ValueError as error:
            raise UserError(f"{path}: {error}") from None
