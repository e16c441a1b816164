"""What a reader of passages answers: where an answer starts and ends."""

import dataclasses
from typing import ClassVar

from keras_bert.errors import UserError


@dataclasses.dataclass(frozen=True)
class SpanExtractionConfig:
    """The head of a `BertForQuestionAnswering`, beside the `BertConfig` of its encoder: nothing is to be set."""

    architecture: ClassVar[str] = "BertForQuestionAnswering"

    def to_fields(self):
        """What config.json says of it."""
        return {"architectures": [self.architecture]}

    @classmethod
    def from_fields(cls, fields, num_outputs, path):
        """Of what a config says; the arguments are those of `ClassificationConfig.from_fields`.

        Raises:
            UserError: the head has not the two outputs of start and end.
        """
        if num_outputs != 2:
            raise UserError(
                f"{path}: needs a head of 2 outputs, start and end, for {cls.architecture}. Received: {num_outputs}."
            )
        return cls()
