"""What a reader of passages answers: where an answer starts and ends, or that there is none."""

import dataclasses
import math
from typing import ClassVar

from keras_bert.errors import UserError


@dataclasses.dataclass(frozen=True)
class SpanExtractionConfig:
    """The head of a `BertForQuestionAnswering`, beside the `BertConfig` of its encoder.

    Attributes:
        null_threshold: the null answer is given where its score exceeds the best span's by more than this
            (run_squad.py's `null_score_diff_threshold`); None where every question has an answer.

    Raises:
        ValueError: the threshold is no finite number.
    """

    architecture: ClassVar[str] = "BertForQuestionAnswering"
    null_threshold: float | None = None

    def __post_init__(self):
        value = self.null_threshold
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if value is not None and not is_number:
            raise ValueError(f"null_score_diff_threshold: needs a finite number. Received: {value!r}.")

    def to_fields(self):
        """What config.json says of it; transformers keeps a field that it does not know."""
        threshold = {} if self.null_threshold is None else {"null_score_diff_threshold": self.null_threshold}
        return {"architectures": [self.architecture], **threshold}

    @classmethod
    def from_fields(cls, fields, num_outputs, path):
        """Of what a config says; the arguments are those of `ClassificationConfig.from_fields`.

        Raises:
            UserError: the head has not the two outputs of start and end, or the threshold is no number.
        """
        if num_outputs != 2:
            raise UserError(
                f"{path}: needs a head of 2 outputs, start and end, for {cls.architecture}. Received: {num_outputs}."
            )
        try:
            return cls(fields.get("null_score_diff_threshold"))
        except ValueError as error:
            raise UserError(f"{path}: {error}") from None
