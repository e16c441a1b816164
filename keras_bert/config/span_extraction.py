"""The head of a question-answering model: logits for where an answer starts and ends."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.errors import UserError


@dataclasses.dataclass(frozen=True)
class SpanExtractionConfig:
    """The head of a `BertForQuestionAnswering`, which has no settings; a `BertConfig` describes its encoder."""

    architecture: ClassVar[str] = "BertForQuestionAnswering"

    def to_fields(self) -> dict[str, Any]:
        """The fields for config.json."""
        return {"architectures": [self.architecture]}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], num_outputs: int, path: str) -> "SpanExtractionConfig":
        """Reads config.json's fields; arguments as in `ClassificationConfig.from_fields`.

        Raises:
            UserError: the head does not have exactly two outputs, start and end.
        """
        if num_outputs != 2:
            raise UserError(
                f"{path}: needs a head with 2 outputs, start and end, for {cls.architecture}. Received: {num_outputs}."
            )
        return cls()
