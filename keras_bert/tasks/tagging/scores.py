"""Precision, recall and F1 of entities and of labels."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import sklearn.metrics

from keras_bert.tasks.tagging.label_schemes import Entities


def entity_scores(gold: Entities, predicted: Entities) -> dict[str, float]:
    """The scores of conlleval (Tjong Kim Sang, CoNLL-2000): an entity is correct if its boundaries and type are.

    Args:
        gold, predicted: entities of the same words.

    Returns: `{name: score}`, from 0 to 1: `f1`, `precision` and `recall` over all entities, whatever the schemes;
        `accuracy`, the share of words with identical labels, which needs one scheme for both sides; then
        `precision_TYPE`, `recall_TYPE` and `f1_TYPE` of each type. 0/0 counts as 0.
    """
    true, found = _named_spans(gold), _named_spans(predicted)
    right = Counter(type for *_, type in true & found)
    true_count, found_count = (Counter(type for *_, type in spans) for spans in (true, found))
    agree = [label == guess for label, guess in zip(gold.written(), predicted.written(), strict=True)]
    whole = precision_recall_f1(right.total(), found_count.total(), true_count.total())
    scores = {"f1": whole["f1"], **whole, "accuracy": sum(agree) / max(len(agree), 1)}
    for type in sorted(true_count | found_count):
        by_type = precision_recall_f1(right[type], found_count[type], true_count[type])
        scores.update((f"{name}_{type}", value) for name, value in by_type.items())
    return scores


def entity_counts(gold: Entities, predicted: Entities, starts: np.ndarray) -> np.ndarray:
    """Each sentence's parts of F1, float64 [sentences, 2]: twice the correct entities, and gold plus predicted ones.

    Args:
        gold, predicted: entities of the same words.
        starts: int64 [sentences + 1], where each sentence starts in the words.
    """
    true, found = _named_spans(gold), _named_spans(predicted)

    def by_sentence(spans: Iterable[tuple[int, int, str]]) -> np.ndarray:
        words = np.array([first for first, *_ in spans], np.int64)
        return np.bincount(np.searchsorted(starts, words, side="right") - 1, minlength=len(starts) - 1)

    return np.stack([2.0 * by_sentence(true & found), by_sentence(true) + by_sentence(found)], axis=1)


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


def precision_recall_f1(right: int, found: int, true: int) -> dict[str, float]:
    """The three scores from the numbers of correct, found and true items; 0/0 counts as 0."""
    precision, recall = right / found if found else 0.0, right / true if true else 0.0
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}
