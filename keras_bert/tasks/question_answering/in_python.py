"""The answers, in Python, of a model that extracts them from passages."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from keras_bert.export.serving_function import ServingFunction
from keras_bert.inference.texts import text_list
from keras_bert.tasks.question_answering.decoding import decoded, n_best_list


@dataclasses.dataclass
class PassageAnswer:
    """The answer to one question.

    Attributes:
        text: the answer, a part of the passage; "" if the model finds that there is none.
        start, end: where it is in the passage, in characters; the end is exclusive. 0 without an answer.
        probability: its probability among `candidates`.
        candidates: `{text: probability}` of the best answers, best first, "" for none.
    """

    text: str
    start: int
    end: int
    probability: float
    candidates: dict[str, float]


def passage_answers(function: ServingFunction, examples: Sequence[Any], unanswerable: bool) -> list[PassageAnswer]:
    """The answers to questions.

    Args:
        examples: (question, passage) or `{"question": …, "context": …}` for each question.
        unanswerable: whether a question may have no answer.

    Raises:
        ValueError: an example is neither of these.
    """
    asked = [_question(example) for example in examples]
    served = function.answers_by_length(*zip(*asked)) if asked else []
    return [_answer(row, unanswerable) for row in served]


def _question(example: Any) -> tuple[str, str]:
    if isinstance(example, Mapping) and {"question", "context"} <= example.keys():
        example = (example["question"], example["context"])
    if not isinstance(example, (tuple, list)) or len(example) != 2:
        raise ValueError(f"texts: needs a question and its passage for each. Received: {str(example)[:60]}.")
    question, context = text_list(example)
    return question, context


def _answer(row: Mapping[str, Any], unanswerable: bool) -> PassageAnswer:
    best = n_best_list(decoded(row), unanswerable)
    candidates = {entry["text"]: entry["probability"] for entry in best}
    text = row["answer"].decode("utf-8")  # By the model's own threshold.
    return PassageAnswer(text, int(row["start"]), int(row["end"]), candidates.get(text, 0.0), candidates)
