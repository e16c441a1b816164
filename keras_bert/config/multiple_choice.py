"""What a chooser answers: one number a choice."""

import dataclasses
from typing import ClassVar

from keras_bert.errors import UserError


@dataclasses.dataclass(frozen=True)
class MultipleChoiceConfig:
    """The head of a `BertForMultipleChoice`, beside the `BertConfig` of its encoder: nothing is to be set."""

    architecture: ClassVar[str] = "BertForMultipleChoice"

    def to_fields(self):
        """What config.json says of it."""
        return {"architectures": [self.architecture]}

    @classmethod
    def from_fields(cls, fields, num_outputs, path):
        """Of what a config says; the arguments are those of `ClassificationConfig.from_fields`.

        Raises:
            UserError: the head has not the one output.
        """
        if num_outputs != 1:
            raise UserError(f"{path}: needs a head of 1 output for {cls.architecture}. Received: {num_outputs}.")
        return cls()
