"""How a model reads texts: the length and truncation that it was fine-tuned with."""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from keras_bert.core.errors import UserError
from keras_bert.core.settings import Checked, Positive, require

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FIELD = "keras_bert"  # The field of config.json for everything that Hugging Face has no field for.
Long = Literal["truncate", "head_tail", "windows"]
TRUNCATE, HEAD_TAIL, WINDOWS = LONG = get_args(Long)
SHORTEST = 3  # [CLS] and the two [SEP] of a pair.

Config = TypeVar("Config", bound="DataclassInstance")


@contextlib.contextmanager
def named_field(path: str) -> Iterator[None]:
    """Turns a setting's `ValueError` into a `UserError` that names the config file and its field."""
    try:
        yield
    except ValueError as error:
        raise UserError(f"{path}: {FIELD}.{error}") from None


def own_field(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The field `keras_bert` of config.json's content, empty if it has none."""
    return fields.get(FIELD) or {}


def read_own_field(cls: type[Config], fields: Mapping[str, Any], path: str, **defaults: Any) -> Config:
    """Builds a dataclass from the values in config.json's field `keras_bert`.

    Args:
        cls: the dataclass; values that are not for one of its fields are ignored.
        fields: the content of config.json.
        path: the config's path, for messages.
        **defaults: values for fields that config.json does not have, or has as null.

    Raises:
        UserError: an invalid value.
    """
    own = own_field(fields)
    with named_field(path):
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(
            **{**defaults, **{name: value for name, value in own.items() if name in names and value is not None}}
        )


@dataclasses.dataclass(frozen=True)
class ReadingConfig(Checked):
    """The settings for reading texts in config.json's field `keras_bert`.

    Attributes:
        max_length: maximum tokens of a text or a pair, special tokens included.
        task: what the model was fine-tuned on, such as "sst-2"; None if config.json does not say.
        long: how to handle longer texts; `truncate` cuts off the end. See `InputConfig`.
        stride: tokens from one window to the next, for `windows`; else None.
        pair: whether the model takes pairs of texts.
    """

    max_length: int
    task: str | None = None
    long: Long = "truncate"
    stride: Positive[int] | None = None
    pair: bool = False

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], max_position_embeddings: int, path: str) -> "ReadingConfig":
        """Reads config.json's fields. By default texts are single, and truncated to the model's maximum length.

        Args:
            fields: config.json without the architecture.
            max_position_embeddings: the model's maximum length.
            path: the config's path, for messages.

        Raises:
            UserError: an invalid value.
        """
        config = read_own_field(cls, fields, path, max_length=max_position_embeddings)
        with named_field(path):
            fits = SHORTEST <= config.max_length <= max_position_embeddings
            require(fits, "max_length", f"{SHORTEST} to {max_position_embeddings} tokens", config.max_length)
        return config

    def to_fields(self) -> dict[str, Any]:
        """The fields for config.json."""
        return {FIELD: {name: value for name, value in vars(self).items() if value is not None}}
