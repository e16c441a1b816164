"""A fine-tuned classifier's answers to texts or pairs of texts, as Python objects."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION
from keras_bert.tasks.classification.head import ClassificationConfig


@dataclasses.dataclass
class Classification:
    """The class of one text.

    Attributes:
        label: the name of the most probable label.
        probability: its probability.
        probabilities: `{label: probability}` of all labels, in the order of the logits.
    """

    label: str
    probability: float
    probabilities: dict[str, float]


Answer: TypeAlias = Classification | dict[str, float] | float


def text_columns(texts: Sequence[str | tuple[str, str]], pair: bool | None = None) -> list[list[str]]:
    """The columns of texts: [texts] or, for pairs, [first texts, second texts].

    Args:
        texts: n texts, or n pairs of texts, as from `text_list`.
        pair: whether the model takes pairs; None if that is not known.

    Raises:
        ValueError: the model takes pairs and these are single texts, or the reverse; or they are a mix of both.
    """
    pair = any(isinstance(text, tuple) for text in texts) if pair is None else pair
    wrong = next((text for text in texts if isinstance(text, tuple) != pair), None)
    if wrong is not None:
        needed, remedy = ("pairs of texts", "(text, text)") if pair else ("single texts", "a string")
        raise ValueError(f"texts: needs only {needed}. Received: {wrong!r}. Give {remedy} for each.")
    return [list(column) for column in zip(*texts, strict=True)] if pair else [list(texts)]  # type: ignore[arg-type]


def class_answer(classification: ClassificationConfig, row: Mapping[str, Any]) -> Answer:
    """The exported model's outputs for a text as an answer.

    That is a `Classification`; in a multi-label task, `{label: probability}`; for a regression, a number.
    """
    if classification.problem_type == REGRESSION:
        return float(row["score"])
    named = dict(zip(classification.labels, row["probabilities"].tolist(), strict=True))
    if classification.problem_type == MULTI_LABEL:
        return named
    label = row["label"].decode("utf-8")
    return Classification(label, named[label], named)
