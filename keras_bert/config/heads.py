"""The heads of the package's own kinds of tasks, as Hugging Face's config.json describes them.

All are made by `from_fields(fields, num_outputs, path)` from the content of a config.json, the number of outputs of the
head in the weights file and the config's path, for messages; that raises `UserError` where the fields contradict each
other or the weights.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from keras_bert.config.features import FEATURES
from keras_bert.config.reading import FIELD
from keras_bert.core.errors import UserError
from keras_bert.core.settings import require

SINGLE_LABEL, MULTI_LABEL, REGRESSION = PROBLEM_TYPES = (
    "single_label_classification",
    "multi_label_classification",
    "regression",
)

METRIC_NAMES = {
    SINGLE_LABEL: ("accuracy", "f1", "macro_f1", "matthews", "gender_parity"),
    MULTI_LABEL: ("micro_f1", "macro_f1", "exact_match"),
    REGRESSION: ("pearson", "spearman"),
}

# The schemes in which a head can learn entities.
BIO, BIOES = LEARNED_SCHEMES = ("bio", "bioes")

Labelled = TypeVar("Labelled", bound="_LabelledHead")


@dataclasses.dataclass(frozen=True)
class _Head:
    """What all heads may have.

    Attributes:
        bilstm_size: the units in each direction of a two-layer BiLSTM between the encoder and the head; None for none.
            transformers has no such models.
    """

    bilstm_size: int | None = dataclasses.field(default=None, kw_only=True)

    def _own_fields(self) -> dict[str, Any]:
        """The fields for config.json that all heads may have."""
        return {FIELD: {"bilstm_size": self.bilstm_size}} if self.bilstm_size else {}


@dataclasses.dataclass(frozen=True)
class MultipleChoiceConfig(_Head):
    """The head of a `BertForMultipleChoice`."""

    architecture: ClassVar[str] = "BertForMultipleChoice"

    def to_fields(self) -> dict[str, Any]:
        """The fields for config.json."""
        return {"architectures": [self.architecture], **self._own_fields()}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], num_outputs: int, path: str) -> "MultipleChoiceConfig":
        """Reads config.json's fields. Raises `UserError` unless the head has one output."""
        if num_outputs != 1:
            raise UserError(f"{path}: needs a head with 1 output for {cls.architecture}. Received: {num_outputs}.")
        return cls(bilstm_size=_bilstm_size(fields, path))


@dataclasses.dataclass(frozen=True)
class SpanExtractionConfig(_Head):
    """The head of a `BertForQuestionAnswering`."""

    architecture: ClassVar[str] = "BertForQuestionAnswering"

    def to_fields(self) -> dict[str, Any]:
        """The fields for config.json."""
        return {"architectures": [self.architecture], **self._own_fields()}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], num_outputs: int, path: str) -> "SpanExtractionConfig":
        """Reads config.json's fields. Raises `UserError` unless the head has two outputs, start and end."""
        if num_outputs != 2:
            raise UserError(
                f"{path}: needs a head with 2 outputs, start and end, for {cls.architecture}. Received: {num_outputs}."
            )
        return cls(bilstm_size=_bilstm_size(fields, path))


@dataclasses.dataclass(frozen=True)
class _LabelledHead(_Head):
    """A head with one output per label.

    Attributes:
        labels: the labels' names in the order of the logits.

    Raises:
        ValueError: an invalid value, such as a duplicate name.
    """

    architecture: ClassVar[str]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        require(all(isinstance(label, str) for label in self.labels), "labels", "names as text", self.labels)
        require(len(set(self.labels)) == len(self.labels), "labels", "names that differ", self.labels)

    @property
    def num_labels(self) -> int:
        return len(self.labels)

    @property
    def is_unnamed(self) -> bool:
        """Whether the labels are those of a config.json that names none."""
        return self.labels == _unnamed(self.num_labels)

    def to_fields(self) -> dict[str, Any]:
        """The fields for config.json."""
        return {
            "architectures": [self.architecture],
            "id2label": {str(index): label for index, label in enumerate(self.labels)},
            "label2id": {label: index for index, label in enumerate(self.labels)},
            "num_labels": len(self.labels),
            **self._own_fields(),
        }


@dataclasses.dataclass(frozen=True)
class ClassificationConfig(_LabelledHead):
    """The head of a `BertForSequenceClassification`.

    Attributes:
        labels: the labels' names in the order of the logits; for regression, a single name for the number.
        problem_type: one of `PROBLEM_TYPES`.

    Raises:
        ValueError: too few labels, a duplicate name, or an unknown problem type.
    """

    architecture: ClassVar[str] = "BertForSequenceClassification"
    problem_type: str = SINGLE_LABEL

    def __post_init__(self) -> None:
        require(
            self.problem_type in PROBLEM_TYPES, "problem_type", f"one of {', '.join(PROBLEM_TYPES)}", self.problem_type
        )
        super().__post_init__()
        count = len(self.labels)
        fits = {SINGLE_LABEL: count > 1, MULTI_LABEL: count > 0, REGRESSION: count == 1}[self.problem_type]
        needed = {SINGLE_LABEL: "at least two labels", MULTI_LABEL: "at least one label", REGRESSION: "one label"}
        require(fits, "labels", f"{needed[self.problem_type]} for {self.problem_type}", self.labels)

    def to_fields(self) -> dict[str, Any]:
        """The fields for config.json."""
        return {**super().to_fields(), "problem_type": self.problem_type}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], num_outputs: int, path: str) -> "ClassificationConfig":
        """Reads config.json's fields. The defaults are transformers': LABEL_0 and so on; one label means regression."""
        problem_type = fields.get("problem_type") or (REGRESSION if num_outputs == 1 else SINGLE_LABEL)
        labels, bilstm_size = _label_names(fields, num_outputs, path), _bilstm_size(fields, path)
        return _new_head(cls, f"{path}: ", labels, problem_type, bilstm_size=bilstm_size)


@dataclasses.dataclass(frozen=True)
class NextSentenceConfig(ClassificationConfig):
    """The head of a `BertForNextSentencePrediction`, alone on an encoder (paper, section 3.1, task 2)."""

    architecture: ClassVar[str] = "BertForNextSentencePrediction"
    labels: tuple[str, ...] = ("IsNext", "NotNext")

    def to_fields(self) -> dict[str, Any]:
        """The fields for config.json; the paper's labels need none, and transformers writes none."""
        return {"architectures": [self.architecture]} if self == type(self)() else super().to_fields()

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], num_outputs: int, path: str) -> "NextSentenceConfig":
        """Reads config.json's fields; the labels are the paper's by default."""
        own = dict(zip("01", cls.labels))
        return super().from_fields({"id2label": own, **fields}, num_outputs, path)  # type: ignore[return-value]


@dataclasses.dataclass(frozen=True)
class SentenceVectorsConfig(ClassificationConfig):
    """The head of a `BertForSentenceVectors`, for which transformers has no class: the cosine of two texts.

    config.json therefore calls the model a BertModel, which its encoder is.
    """

    architecture: ClassVar[str] = "BertForSentenceVectors"
    problem_type: str = REGRESSION


@dataclasses.dataclass(frozen=True)
class SpanPairConfig(ClassificationConfig):
    """The head of a `BertForSpanPairs`, for which transformers has no class.

    Attributes:
        reads_cls: whether it sees the pooled [CLS] besides the two spans.
    """

    architecture: ClassVar[str] = "BertForSpanPairs"
    reads_cls: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require(isinstance(self.reads_cls, bool), "reads_cls", "true or false", self.reads_cls)

    def to_fields(self) -> dict[str, Any]:
        """The fields for config.json."""
        own = {**self._own_fields().get(FIELD, {}), "reads_cls": self.reads_cls}
        return {**super().to_fields(), "architectures": ["BertModel"], FIELD: own}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], num_outputs: int, path: str) -> "SpanPairConfig":
        """Reads config.json's fields."""
        labels, bilstm_size = _label_names(fields, num_outputs, path), _bilstm_size(fields, path)
        reads_cls = fields[FIELD].get("reads_cls")
        return _new_head(cls, f"{path}: {FIELD}.", labels, reads_cls=reads_cls, bilstm_size=bilstm_size)


@dataclasses.dataclass(frozen=True)
class TokenClassificationConfig(_LabelledHead):
    """The head of a `BertForTokenClassification`."""

    architecture: ClassVar[str] = "BertForTokenClassification"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.labels, "labels", "at least one label", self.labels)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], num_outputs: int, path: str) -> "TokenClassificationConfig":
        """Reads config.json's fields."""
        labels, bilstm_size = _label_names(fields, num_outputs, path), _bilstm_size(fields, path)
        return _new_head(cls, f"{path}: ", labels, bilstm_size=bilstm_size)


@dataclasses.dataclass(frozen=True)
class FeatureTaggingConfig(TokenClassificationConfig):
    """The head of a `BertFeatureTagger`, for which transformers has no class.

    config.json therefore calls the model a BertModel, which its encoder is, and describes the tagger in the field
    `keras_bert`.

    Attributes:
        labels: the labels' names in the order of the logits.
        features: one of `config.features.FEATURES`.
        lstm_size: units per direction of each LSTM.
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
        return {**super().to_fields(), "architectures": ["BertModel"], FIELD: own}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], num_outputs: int, path: str) -> "FeatureTaggingConfig":
        """Reads config.json's fields."""
        labels, own = _label_names(fields, num_outputs, path), fields[FIELD]
        return _new_head(cls, f"{path}: {FIELD}.", labels, own.get("features"), own.get("lstm_size"))


def _bilstm_size(fields: Mapping[str, Any], path: str) -> int | None:
    """`bilstm_size` in config.json's fields. Raises `UserError` unless it is a size or absent."""
    size = (fields.get(FIELD) or {}).get("bilstm_size")
    if size is None or isinstance(size, int) and size > 0:
        return size
    raise UserError(f"{path}: {FIELD}.bilstm_size: needs a whole number above 0. Received: {size!r}.")


@dataclasses.dataclass(frozen=True)
class CrfTaggingConfig(TokenClassificationConfig):
    """The head of a `BertCrfTagger`, for which transformers has no class.

    Attributes:
        labels: the labels' names in the order of the emissions.
        learned_scheme: one of `LEARNED_SCHEMES`, whose forbidden transitions are impossible; None for labels that mark
            no entities.
    """

    architecture: ClassVar[str] = "BertCrfTagger"
    learned_scheme: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        known = (None, *LEARNED_SCHEMES)
        require(self.learned_scheme in known, "learned_scheme", f"one of {known}", self.learned_scheme)

    def to_fields(self) -> dict[str, Any]:
        """The fields for config.json."""
        own = {**self._own_fields().get(FIELD, {}), "learned_scheme": self.learned_scheme}
        return {**super().to_fields(), "architectures": ["BertModel"], FIELD: own}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], num_outputs: int, path: str) -> "CrfTaggingConfig":
        """Reads config.json's fields."""
        labels, bilstm_size = _label_names(fields, num_outputs, path), _bilstm_size(fields, path)
        scheme = fields[FIELD].get("learned_scheme")
        return _new_head(cls, f"{path}: {FIELD}.", labels, scheme, bilstm_size=bilstm_size)


@dataclasses.dataclass(frozen=True)
class SegmentationConfig(CrfTaggingConfig):
    """The head of a `BertSegmenter`: the labels of characters, which say where words begin and end."""

    architecture: ClassVar[str] = "BertSegmenter"


def _new_head(head: type[Labelled], origin: str, labels: tuple[str, ...], *values: Any, **options: Any) -> Labelled:
    """A head made from config.json's values; errors begin with `origin`."""
    try:
        return head(labels, *values, **options)
    except ValueError as error:
        raise UserError(f"{origin}{error}") from None


def _unnamed(count: int) -> tuple[str, ...]:
    """What transformers calls labels without names."""
    return tuple(f"LABEL_{index}" for index in range(count))


def _label_names(fields: Mapping[str, Any], num_labels: int, path: str) -> tuple[str, ...]:
    """The labels in config.json's fields; LABEL_0 and so on, as in transformers, if it has none.

    Raises:
        UserError: the names are not one for each of `num_labels` labels.
    """
    names = fields.get("id2label") or dict(zip(map(str, range(num_labels)), _unnamed(num_labels)))
    numbers = [str(index) for index in range(num_labels)]
    if not isinstance(names, dict) or set(names) != set(numbers):
        raise UserError(
            f"{path}: id2label needs a name for each of 0 to {num_labels - 1}, because the classifier's tensors have "
            f"{num_labels} rows. Received: {names!r}."
        )
    return tuple(str(names[number]) for number in numbers)
