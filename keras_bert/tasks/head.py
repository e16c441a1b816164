"""The config of a task's head, as config.json describes it: the base classes for all kinds of tasks.

Each kind's own class is in `tasks/KIND/head.py` or `task.py`.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar

from keras_bert.config.reading import FIELD, own_field
from keras_bert.core.errors import UserError
from keras_bert.core.settings import Checked, Positive, require

HeadT = TypeVar("HeadT", bound="Head")
LabelledT = TypeVar("LabelledT", bound="LabelledHead")


@dataclasses.dataclass(frozen=True)
class Head(Checked):
    """A head with a fixed number of outputs.

    Class attributes:
        architecture: the name of the model's class.
        outputs: the names of the outputs, in messages; empty for a head with one output for each label.
        own_settings: the settings that config.json holds in the field `keras_bert`, besides `bilstm_size`.

    Attributes:
        bilstm_size: the units in each direction of a two-layer BiLSTM between the encoder and the head; None for none.
            transformers has no such models.
    """

    architecture: ClassVar[str]
    outputs: ClassVar[tuple[str, ...]] = ()
    own_settings: ClassVar[tuple[str, ...]] = ()

    bilstm_size: Positive[int] | None = dataclasses.field(default=None, kw_only=True)

    @property
    def num_outputs(self) -> int:
        return len(self.outputs)

    @property
    def is_unnamed(self) -> bool:
        """Whether config.json names no labels, so that they are LABEL_0, LABEL_1 and so on."""
        return False

    def to_fields(self) -> dict[str, Any]:
        """The fields for config.json."""
        own = {"bilstm_size": self.bilstm_size} if self.bilstm_size else {}
        own.update((name, getattr(self, name)) for name in self.own_settings)
        return {"architectures": [self.architecture], **({FIELD: own} if own else {})}

    @classmethod
    def new(cls: type[HeadT], task: str, labels: Iterable[str] | None) -> HeadT:
        """A new head for a task. Raises `UserError` for labels that it does not take, or that it needs and lacks."""
        require_no_labels(task, labels)
        return cls()

    @classmethod
    def from_fields(cls: type[HeadT], fields: Mapping[str, Any], num_outputs: int, path: str) -> HeadT:
        """The head that the content of a config.json describes.

        Args:
            fields: the content.
            num_outputs: the outputs of the head in the weights file.
            path: the file, for messages.

        Raises:
            UserError: the fields contradict each other or the weights.
        """
        if num_outputs != len(cls.outputs):
            count = "1 output" if len(cls.outputs) == 1 else f"{len(cls.outputs)} outputs, {' and '.join(cls.outputs)},"
            raise UserError(f"{path}: needs a head with {count} for {cls.architecture}. Received: {num_outputs}.")
        return cls(bilstm_size=_bilstm_size(fields, path))


def require_no_labels(task: str, labels: Iterable[str] | None) -> None:
    """Raises `UserError` if labels are given for a task that has none."""
    if labels is not None:
        raise UserError(f"labels: needs none for {task}, whose head has no labels. Received: some. Leave them out.")


@dataclasses.dataclass(frozen=True)
class LabelledHead(Head):
    """A head with one output per label.

    Attributes:
        labels: the labels' names in the order of the logits.

    Raises:
        ValueError: an invalid value, such as a duplicate name.
    """

    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        require(len(set(self.labels)) == len(self.labels), "labels", "names that differ", self.labels)

    @property
    def num_labels(self) -> int:
        return len(self.labels)

    @property
    def num_outputs(self) -> int:
        return self.num_labels

    @property
    def is_unnamed(self) -> bool:
        return self.labels == _unnamed(self.num_labels)

    @classmethod
    def new(cls: type[LabelledT], task: str, labels: Iterable[str] | None) -> LabelledT:
        if labels is None or cls.own_settings:
            needed = "keras_bert.finetune, which learns its head's settings from data" if cls.own_settings else "labels"
            raise UserError(f"{task}: needs {needed}. Received: {'labels' if labels else 'none'}.")
        try:
            return cls(tuple(labels))
        except ValueError as error:
            raise UserError(str(error)) from None

    def to_fields(self) -> dict[str, Any]:
        fields = super().to_fields()
        return {
            "architectures": fields.pop("architectures"),
            "id2label": {str(index): label for index, label in enumerate(self.labels)},
            "label2id": {label: index for index, label in enumerate(self.labels)},
            "num_labels": len(self.labels),
            **fields,
        }

    @classmethod
    def from_fields(cls: type[LabelledT], fields: Mapping[str, Any], num_outputs: int, path: str) -> LabelledT:
        own = own_field(fields)
        labels, bilstm_size = _label_names(fields, num_outputs, path), _bilstm_size(fields, path)
        values = {name: own.get(name) for name in cls.own_settings}
        try:
            return cls(labels, bilstm_size=bilstm_size, **cls._values(fields, num_outputs), **values)
        except ValueError as error:
            origin = f"{path}: {FIELD}." if cls.own_settings else f"{path}: "
            raise UserError(f"{origin}{error}") from None

    @classmethod
    def _values(cls, fields: Mapping[str, Any], num_outputs: int) -> dict[str, Any]:
        """Further arguments of the class, read from config.json's own fields."""
        return {}


def _bilstm_size(fields: Mapping[str, Any], path: str) -> int | None:
    size = own_field(fields).get("bilstm_size")
    if size is None or type(size) is int and size > 0:  # Not isinstance, for which true is an integer.
        return size
    raise UserError(f"{path}: {FIELD}.bilstm_size: needs a whole number above 0. Received: {size!r}.")


def _unnamed(count: int) -> tuple[str, ...]:
    """The names that transformers gives to unnamed labels."""
    return tuple(f"LABEL_{index}" for index in range(count))


def _label_names(fields: Mapping[str, Any], num_labels: int, path: str) -> tuple[str, ...]:
    """The labels in config.json's fields; LABEL_0 and so on, as in transformers, if it has none.

    Raises:
        UserError: there is not exactly one name for each of `num_labels` labels.
    """
    names = fields.get("id2label") or dict(zip(map(str, range(num_labels)), _unnamed(num_labels)))
    numbers = [str(index) for index in range(num_labels)]
    if not isinstance(names, dict) or set(names) != set(numbers):
        raise UserError(
            f"{path}: id2label needs a name for each of 0 to {num_labels - 1}, because the classifier's tensors have "
            f"{num_labels} rows. Received: {names!r}."
        )
    return tuple(str(names[number]) for number in numbers)
