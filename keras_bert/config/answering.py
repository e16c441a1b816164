"""How a model that finds answers in passages takes its questions, and what it takes for an answer."""

import dataclasses
import numbers

from keras_bert.config.checks import require
from keras_bert.config.reading import said_of


@dataclasses.dataclass(frozen=True)
class AnsweringConfig:
    """What config.json says in `keras_bert` about questions and answers; run_squad.py's where it does not.

    Attributes:
        max_question_length: pieces after which a question is cut.
        max_answer_length: pieces of the longest answer.
        stride: pieces from the beginning of one window of a passage to that of the next.
        unanswerable: whether there may be no answer.
        null_threshold: what the odds of no answer must be above for that to be the answer.
    """

    max_question_length: int = 64
    max_answer_length: int = 30
    stride: int = 128
    unanswerable: bool = False
    null_threshold: float = 0.0

    @classmethod
    def from_fields(cls, fields, path):
        """Of a config's other fields; `path` is for messages. Raises `UserError` for a value that cannot be."""
        return said_of(cls, fields, path)

    def __post_init__(self):
        for name, least in (("max_question_length", 0), ("max_answer_length", 1), ("stride", 1)):
            value = getattr(self, name)
            require(isinstance(value, int) and value >= least, name, f"{least} pieces or more", value)
        require(isinstance(self.unanswerable, bool), "unanswerable", "true or false", self.unanswerable)
        require(isinstance(self.null_threshold, numbers.Real), "null_threshold", "a number", self.null_threshold)
