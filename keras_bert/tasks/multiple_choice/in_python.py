"""A multiple-choice model's answers as Python objects."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from keras_bert.export.serving_function import ServingFunction
from keras_bert.inference.texts import text_list


@dataclasses.dataclass
class Choice:
    """The choice for one example.

    Attributes:
        index: its index among the choices.
        text: the choice.
        probability: its probability.
        probabilities: the probabilities of all choices, in their order.
    """

    index: int
    text: str
    probability: float
    probabilities: list[float]


def choices_made(function: ServingFunction, examples: Sequence[Any]) -> list[Choice]:
    """The best choice for each example.

    Args:
        examples: (context, choices) or (context, question, choices); or a dict with these names, `question` being
            optional.

    Raises:
        ValueError: an example is none of these, has fewer than two choices, or a blank one.
    """
    rows = [_example(example) for example in examples]
    served = function.answers_by_length(*zip(*rows)) if rows else []
    return [_choice(choices, row) for (_, _, choices), row in zip(rows, served, strict=True)]


def _example(example: Any) -> tuple[str, str, list[str]]:
    if isinstance(example, Mapping) and {"context", "choices"} <= example.keys():
        example = (example["context"], example.get("question") or "", example["choices"])
    if isinstance(example, (tuple, list)) and len(example) == 2:
        example = (example[0], "", example[1])
    is_whole = isinstance(example, (tuple, list)) and len(example) == 3 and isinstance(example[2], (tuple, list))
    if not is_whole or len(example[2]) < 2:
        raise ValueError(f"texts: needs a context and two choices or more for each. Received: {str(example)[:60]}.")
    context, question, *choices = text_list([*example[:2], *example[2]])
    if problem := blank_choice(choices):
        raise ValueError(f"texts: {problem}")
    return context, question, choices


def blank_choice(choices: Sequence[str]) -> str | None:
    """The error if one of the choices is blank; None if none is."""
    return None if all(map(str.strip, choices)) else f"needs a text for each choice. Received: {choices!r:.60}."


def _choice(choices: Sequence[str], row: Mapping[str, Any]) -> Choice:
    index, probabilities = int(row["choice"]), row["probabilities"][: len(choices)].tolist()
    return Choice(index, choices[index], probabilities[index], probabilities)
