"""What a classifier answers: its labels and the kind of its task, as Hugging Face's config.json says it."""

import dataclasses

from keras_bert.config.checks import require
from keras_bert.errors import UserError

SINGLE_LABEL, MULTI_LABEL, REGRESSION = PROBLEM_TYPES = (
    "single_label_classification", "multi_label_classification", "regression",
)  # fmt: skip

METRIC_NAMES = {
    SINGLE_LABEL: ("accuracy", "f1", "macro_f1", "matthews"),
    MULTI_LABEL: ("micro_f1", "macro_f1", "exact_match"),
    REGRESSION: ("pearson", "spearman"),
}

ARCHITECTURE = "BertForSequenceClassification"


@dataclasses.dataclass(frozen=True)
class ClassificationConfig:
    """The head of a `BertForSequenceClassification`, beside the `BertConfig` of its encoder.

    Attributes:
        labels: the labels' names in the order of the logits; for regression the one name of the number.
        problem_type: one of `PROBLEM_TYPES`.

    Raises:
        ValueError: too few labels, two of one name, or an unknown problem type.
    """

    labels: tuple
    problem_type: str = SINGLE_LABEL

    def __post_init__(self):
        object.__setattr__(self, "labels", tuple(self.labels))
        require(
            self.problem_type in PROBLEM_TYPES, "problem_type", f"one of {', '.join(PROBLEM_TYPES)}", self.problem_type
        )
        require(all(isinstance(label, str) for label in self.labels), "labels", "names as text", self.labels)
        require(len(set(self.labels)) == len(self.labels), "labels", "names that differ", self.labels)
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
            "architectures": [ARCHITECTURE],
            "id2label": {str(index): label for index, label in enumerate(self.labels)},
            "label2id": {label: index for index, label in enumerate(self.labels)},
            "num_labels": self.num_labels,
            "problem_type": self.problem_type,
        }

    @classmethod
    def from_fields(cls, fields, num_labels, path):
        """Of what a config says, by transformers' defaults: LABEL_0 and so on, and one label means regression.

        Args:
            fields: the config's content.
            num_labels: how many logits the classifier in the file has.
            path: the config, for messages.

        Raises:
            UserError: the fields do not fit together, or not to the classifier.
        """
        names = fields.get("id2label") or {str(index): f"LABEL_{index}" for index in range(num_labels)}
        numbers = [str(index) for index in range(num_labels)]
        if not isinstance(names, dict) or set(names) != set(numbers):
            raise UserError(
                f"{path}: id2label needs a name for each of 0 to {num_labels - 1}, as the classifier's tensors have "
                f"{num_labels} rows. Received: {names!r}."
            )
        problem_type = fields.get("problem_type") or (REGRESSION if num_labels == 1 else SINGLE_LABEL)
        try:
            return cls(tuple(str(names[number]) for number in numbers), problem_type)
        except ValueError as error:
            raise UserError(f"{path}: {error}") from None
