"""How a question-answering model reads questions and passages, and what counts as an answer."""

import dataclasses
import numbers
from collections.abc import Mapping
from typing import Any

from keras_bert.config.checks import require
from keras_bert.config.reading import read_own_field


@dataclasses.dataclass(frozen=True)
class AnsweringConfig:
    """The question-answering settings in config.json's field `keras_bert`. The defaults are run_squad.py's.

    Attributes:
        max_question_length: pieces to which a question is truncated.
        max_answer_length: pieces in the longest answer.
        stride: pieces from the start of one window of a passage to the start of the next.
        unanswerable: whether a question may have no answer.
        null_threshold: "no answer" is predicted if its score exceeds that of the best answer by more than this.
    """

    max_question_length: int = 64
    max_answer_length: int = 30
    stride: int = 128
    unanswerable: bool = False
    null_threshold: float = 0.0

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], path: str) -> "AnsweringConfig":
        """Reads config.json's fields; `path` is for messages. Raises `UserError` for an invalid value."""
        return read_own_field(cls, fields, path)

    def __post_init__(self) -> None:
        for name, least in (("max_question_length", 0), ("max_answer_length", 1), ("stride", 1)):
            value = getattr(self, name)
            require(isinstance(value, int) and value >= least, name, f"{least} pieces or more", value)
        require(isinstance(self.unanswerable, bool), "unanswerable", "true or false", self.unanswerable)
        require(isinstance(self.null_threshold, numbers.Real), "null_threshold", "a number", self.null_threshold)
