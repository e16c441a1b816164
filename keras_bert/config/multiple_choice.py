"""The head of a multiple-choice model: one logit per choice."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.errors import UserError


@dataclasses.dataclass(frozen=True)
class MultipleChoiceConfig:
    """The head of a `BertForMultipleChoice`, which has no settings; a `BertConfig` describes its encoder."""

    architecture: ClassVar[str] = "BertForMultipleChoice"

    def to_fields(self) -> dict[str, Any]:
        """The fields for config.json."""
        return {"architectures": [self.architecture]}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], num_outputs: int, path: str) -> "MultipleChoiceConfig":
        """Reads config.json's fields; arguments as in `ClassificationConfig.from_fields`.

        Raises:
            UserError: the head does not have exactly one output.
        """
        if num_outputs != 1:
            raise UserError(f"{path}: needs a head with 1 output for {cls.architecture}. Received: {num_outputs}.")
        return cls()
