"""The head of classification and regression: a dense layer on one vector of each row."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION, SINGLE_LABEL, ProblemType
from keras_bert.config.reading import FIELD, own_field
from keras_bert.core.settings import require
from keras_bert.models.tensor_names import output_layer
from keras_bert.tasks.head import LabelledHead

NextSentenceT = TypeVar("NextSentenceT", bound="NextSentenceConfig")

CLASSIFIER = "classifier"
# Classifies sequences, tokens or choices, by the config's `architectures`; Google's own is for sequences.
CLASSIFIER_TENSORS = {CLASSIFIER: output_layer("classifier.dense", "classifier", "")}
# The field of config.json that tells sentence-transformers' CrossEncoder how to turn logits into scores.
_CROSS_ENCODER = "sentence_transformers"
_ACTIVATIONS = {True: "torch.nn.modules.activation.Sigmoid", False: "torch.nn.modules.linear.Identity"}
CLASSIFIER_TITLES = {CLASSIFIER: "classifier"}


@dataclasses.dataclass(frozen=True)
class ClassificationConfig(LabelledHead):
    """The head of a `BertForSequenceClassification`.

    Attributes:
        labels: the labels' names in the order of the logits; for regression, a single name for the number.
        problem_type: whether a label is one class, several classes, or a number.
        logistic: whether the number is a probability, the sigmoid of the logit, trained by binary cross-entropy.

    Raises:
        ValueError: too few labels, a duplicate name, an unknown problem type, or a logistic head for classes.

    Example:
        keras_bert.ClassificationConfig(("bad", "good")).problem_type
    """

    architecture: ClassVar[str] = "BertForSequenceClassification"
    problem_type: ProblemType = "single_label_classification"
    logistic: bool = dataclasses.field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        count = len(self.labels)
        fits = {SINGLE_LABEL: count > 1, MULTI_LABEL: count > 0, REGRESSION: count == 1}[self.problem_type]
        needed = {SINGLE_LABEL: "at least two labels", MULTI_LABEL: "at least one label", REGRESSION: "one label"}
        require(fits, "labels", f"{needed[self.problem_type]} for {self.problem_type}", self.labels)
        require(not self.logistic or self.problem_type == REGRESSION, "logistic", REGRESSION, self.problem_type)

    def to_fields(self) -> dict[str, Any]:
        fields = super().to_fields()
        if self.problem_type == REGRESSION and self.architecture == ClassificationConfig.architecture:
            fields[_CROSS_ENCODER] = {"activation_fn": _ACTIVATIONS[self.logistic]}
        if not self.logistic:
            return {**fields, "problem_type": self.problem_type}
        # The type that transformers trains with binary cross-entropy and answers with the sigmoid.
        return {**fields, "problem_type": MULTI_LABEL, FIELD: {**fields.get(FIELD, {}), "logistic": True}}

    @classmethod
    def _values(cls, fields: Mapping[str, Any], num_outputs: int) -> dict[str, Any]:
        """The problem type; as in transformers, a single output without one means regression."""
        if own_field(fields).get("logistic"):
            return {"problem_type": REGRESSION, "logistic": True}
        return {"problem_type": fields.get("problem_type") or (REGRESSION if num_outputs == 1 else SINGLE_LABEL)}


@dataclasses.dataclass(frozen=True)
class NextSentenceConfig(ClassificationConfig):
    """The head of a `BertForNextSentencePrediction`, alone on an encoder (paper, section 3.1, task 2)."""

    architecture: ClassVar[str] = "BertForNextSentencePrediction"
    labels: tuple[str, ...] = ("IsNext", "NotNext")

    def to_fields(self) -> dict[str, Any]:
        """The fields for config.json; the paper's labels need none, and transformers writes none."""
        return {"architectures": [self.architecture]} if self == type(self)() else super().to_fields()

    @classmethod
    def from_fields(cls: type[NextSentenceT], fields: Mapping[str, Any], num_outputs: int, path: str) -> NextSentenceT:
        """Like `LabelledHead.from_fields`, but with the paper's labels by default."""
        return super().from_fields({"id2label": dict(zip("01", cls.labels)), **fields}, num_outputs, path)
