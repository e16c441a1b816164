"""What a fine-tuned classifier says of texts, or of pairs of texts."""

import dataclasses

import numpy as np
from scipy.special import expit, softmax

from keras_bert.config.heads import MULTI_LABEL, REGRESSION
from keras_bert.config.reading import TRUNCATE
from keras_bert.inputs.long_texts import fit_rows
from keras_bert.inputs.pieces import PieceSpans
from keras_bert.inputs.segments import padded_rows

_BATCH = 32


@dataclasses.dataclass
class Classification:
    """The class of one text.

    Attributes:
        label: the name of the most probable label.
        probability: its probability.
        probabilities: `{label: probability}` of all, in the order of the logits.
    """

    label: str
    probability: float
    probabilities: dict


def classify(model, tokenizer, classification, texts):
    """Classifies each text.

    Args:
        model: a `BertForSequenceClassification`.
        tokenizer: its `WordPieceTokenizer`.
        classification: its `ClassificationConfig`.
        texts: list of str, or of pairs of str. What is too long is cut at the model's last position.

    Returns: a list of `Classification`; for several labels of `{label: its own probability}`, for regression of
        numbers.
    """
    answers = []
    for start in range(0, len(texts), _BATCH):
        inputs = _inputs(tokenizer, texts[start : start + _BATCH], model.config.max_position_embeddings)
        answers += [_answer(classification, row) for row in np.asarray(model(inputs)["logits"], "float64")]
    return answers


def _inputs(tokenizer, texts, longest):
    if all(isinstance(text, str) for text in texts):
        columns = [texts]
    else:
        wrong = next((text for text in texts if not _is_pair(text)), None)
        if wrong is not None:
            raise ValueError(f"texts: needs texts alone, or pairs of texts alone. Received: {wrong!r}.")
        columns = zip(*texts, strict=True)
    pieces = [PieceSpans.of(tokenizer(list(column))) for column in columns]
    segments, _ = fit_rows(pieces, longest, TRUNCATE, None)
    return padded_rows(segments, tokenizer.vocabulary)


def _is_pair(text):
    return isinstance(text, (tuple, list)) and len(text) == 2 and all(isinstance(part, str) for part in text)


def _answer(classification, logits):
    if classification.problem_type == REGRESSION:
        return float(logits[0])
    if classification.problem_type == MULTI_LABEL:
        return dict(zip(classification.labels, expit(logits).tolist(), strict=True))
    named = dict(zip(classification.labels, softmax(logits).tolist(), strict=True))
    best = classification.labels[int(np.argmax(logits))]
    return Classification(best, named[best], named)
