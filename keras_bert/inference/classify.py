"""Classifies texts or pairs of texts with a fine-tuned model."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from scipy.special import expit, softmax

from keras_bert.config.heads import MULTI_LABEL, REGRESSION, ClassificationConfig
from keras_bert.config.reading import TRUNCATE
from keras_bert.inputs.long_texts import fit_rows
from keras_bert.inputs.pieces import PieceSpans
from keras_bert.inputs.segments import padded_rows
from keras_bert.models.sequence_classification import BertForSequenceClassification
from keras_bert.text.tokenizers import Tokenizer

TextOrPair: TypeAlias = str | Sequence[str]

_BATCH = 32


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


def classify(
    model: BertForSequenceClassification,
    tokenizer: Tokenizer,
    classification: ClassificationConfig,
    texts: Sequence[TextOrPair],
) -> list[Answer]:
    """Classifies each text or pair of texts.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        classification: the config of its head.
        texts: texts, or pairs of texts. They are truncated to the model's maximum length.

    Returns: for each text a `Classification`; in a multi-label task `{label: its own probability}`; for regression a
        number.

    Raises:
        ValueError: the texts mix single texts and pairs.
    """
    answers: list[Answer] = []
    for start in range(0, len(texts), _BATCH):
        inputs = _inputs(tokenizer, texts[start : start + _BATCH], model.config.max_position_embeddings)
        answers += [_answer(classification, row) for row in np.asarray(model(inputs)["logits"], "float64")]
    return answers


def _inputs(tokenizer: Tokenizer, texts: Sequence[TextOrPair], longest: int) -> dict[str, np.ndarray]:
    if all(isinstance(text, str) for text in texts):
        columns: Iterable = [texts]
    else:
        wrong = next((text for text in texts if not _is_pair(text)), None)
        if wrong is not None:
            raise ValueError(f"texts: needs only texts, or only pairs of texts. Received: {wrong!r}.")
        columns = zip(*texts, strict=True)
    pieces = [PieceSpans.of(tokenizer(list(column))) for column in columns]
    segments, _ = fit_rows(pieces, longest, TRUNCATE, None)
    return padded_rows(segments, tokenizer.vocabulary)


def _is_pair(text: object) -> bool:
    return isinstance(text, (tuple, list)) and len(text) == 2 and all(isinstance(part, str) for part in text)


def _answer(classification: ClassificationConfig, logits: np.ndarray) -> Answer:
    if classification.problem_type == REGRESSION:
        return float(logits[0])
    if classification.problem_type == MULTI_LABEL:
        return dict(zip(classification.labels, expit(logits).tolist(), strict=True))
    named = dict(zip(classification.labels, softmax(logits).tolist(), strict=True))
    best = classification.labels[int(np.argmax(logits))]
    return Classification(best, named[best], named)
