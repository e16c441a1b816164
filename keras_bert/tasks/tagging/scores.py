"""Precision, recall and F1 of entities and of labels."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import sklearn.metrics

from keras_bert.tasks.tagging.label_schemes import Entities


def entity_scores(gold: Entities, predicted: Entities) -> dict[str, float]:
    """The scores of conlleval (Tjong Kim Sang, CoNLL-2000): an entity is correct if its ends and its type are.

    Args:
        gold, predicted: entities of the same words, in any scheme.

    Returns: `{name: score}`, from 0 to 1: `f1`, `precision` and `recall` over all entities; `accuracy` of the words'
        labels, in BIO; then `precision_TYPE`, `recall_TYPE` and `f1_TYPE` of each type. 0/0 counts as 0.
    """
    true, found = _named_spans(gold), _named_spans(predicted)
    right = Counter(type for *_, type in true & found)
    true_count, found_count = (Counter(type for *_, type in spans) for spans in (true, found))
    agree = np.array(gold.labels("bio")) == np.array(predicted.labels("bio"))
    whole = _scores(right.total(), found_count.total(), true_count.total())
    scores = {"f1": whole["f1"], **whole, "accuracy": float(agree.mean())}
    for type in sorted(true_count | found_count):
        by_type = _scores(right[type], found_count[type], true_count[type])
        scores.update((f"{name}_{type}", value) for name, value in by_type.items())
    return scores


def label_scores(gold: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
    """The scores of two lists of labels, from 0 to 1: `accuracy`, then `precision_`, `recall_` and `f1_LABEL`.

    0/0 counts as 0.
    """
    labels = sorted({*gold, *predicted})
    columns = sklearn.metrics.precision_recall_fscore_support(gold, predicted, labels=labels, zero_division=0.0)
    scores = {"accuracy": float(sklearn.metrics.accuracy_score(gold, predicted))}
    for label, *values in zip(labels, *columns[:3]):
        scores.update((f"{name}_{label}", float(value)) for name, value in zip(("precision", "recall", "f1"), values))
    return scores


def _named_spans(entities: Entities) -> set[tuple[int, int, str]]:
    return {(first, last, entities.types[type]) for first, last, type in entities.spans().tolist()}


def _scores(right: int, found: int, true: int) -> dict[str, float]:
    precision, recall = right / found if found else 0.0, right / true if true else 0.0
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}
