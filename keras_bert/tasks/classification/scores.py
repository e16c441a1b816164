"""Predictions and the metrics of GLUE and SuperGLUE, computed by scikit-learn and SciPy.

Every metric is finite, even where its formula is 0/0:

- `matthews` is 0.0 if all labels or all predictions are of one class, as in scikit-learn.
- `f1` is 0.0 if the class is neither a label nor a prediction; so are `micro_f1` and `macro_f1`.
- `pearson` and `spearman` are 0.0 if all labels or all predictions are equal, as with a single example. SciPy
  returns NaN there, but an answer that does not depend on the text is as uninformative as an uncorrelated one.

Ties in `spearman` share the mean of their ranks.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.special
import scipy.stats
import sklearn.metrics
from numpy.typing import ArrayLike

from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION, SINGLE_LABEL
from keras_bert.core.errors import UserError
from keras_bert.inference.texts import require_numbers
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.questions import Question
from keras_bert.tasks.question_answering.scores import squad_v1_scores


def predictions(classification: ClassificationConfig, logits: ArrayLike) -> np.ndarray:
    """Turns logits into predictions.

    Args:
        logits: [examples, labels].

    Returns: int [examples], the class (the first in a tie); multi-label: int [examples, labels], 1 for logits above 0,
        else 0; regression: float [examples].

    Raises:
        UserError: a logit is not finite.
    """
    logits = np.asarray(logits, "float64")
    require_numbers(logits)
    if classification.problem_type == REGRESSION:
        return numbers(classification, logits)
    if classification.problem_type == MULTI_LABEL:
        return (logits > 0.0).astype("int64")
    return logits.argmax(axis=1)


def numbers(classification: ClassificationConfig, logits: np.ndarray) -> np.ndarray:
    """The numbers of a regression, [examples], from logits [examples, 1]; for a logistic head, their sigmoid."""
    return scipy.special.expit(logits[:, 0]) if classification.logistic else logits[:, 0]


def scores(
    classification: ClassificationConfig, metrics: Sequence[str], labels: ArrayLike, predicted: ArrayLike
) -> dict[str, float]:
    """`{metric: score}`, in the order of `metrics`.

    Args:
        metrics: names, of `METRICS` for its problem type.
        labels: in the shape of `predicted`.
        predicted: what `predictions` returns.

    Raises:
        ValueError: there are no examples, a label is invalid (such as a hidden one), or a metric is unknown.
    """
    labels, predicted = np.asarray(labels), np.asarray(predicted)
    _check(classification, labels, predicted)
    known = dict(METRICS[classification.problem_type])
    if classification.problem_type == SINGLE_LABEL and classification.num_labels == 2:
        known["f1"] = _binary_f1
    unknown = [name for name in metrics if name not in known]
    if unknown:
        raise ValueError(
            f"metrics: needs some of {', '.join(known)} for {classification.problem_type}. Received: {unknown[0]!r}."
        )
    return {name: float(known[name](labels, predicted)) for name in metrics}


def majority_scores(
    classification: ClassificationConfig, metrics: Sequence[str], train_labels: ArrayLike, labels: ArrayLike
) -> dict[str, float]:
    """The scores of one answer to every example: the most frequent one in training or, for regression, the mean.

    In a multi-label task an answer is a set of labels. Ties go to the first answer in sorted order.
    """
    train_labels = np.asarray(train_labels)
    if classification.problem_type == REGRESSION:
        answer = train_labels.mean()
    else:
        answers, counts = np.unique(train_labels, axis=0, return_counts=True)
        answer = answers[counts.argmax()]
    return scores(classification, metrics, labels, np.broadcast_to(answer, np.shape(labels)))


def scores_by_example(
    classification: ClassificationConfig, metrics: Sequence[str], labels: np.ndarray, predicted: np.ndarray
) -> dict[str, np.ndarray]:
    """`{metric: float64 [examples, 2]}`, as for `Problem.by_example`; the arguments are those of `scores`."""
    right = labels == predicted
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    if classification.problem_type == REGRESSION:
        found = dict.fromkeys(("pearson", "spearman"), (labels, predicted))
    elif classification.problem_type == SINGLE_LABEL:
        found["accuracy"] = right, np.ones(len(labels))
        if classification.num_labels == 2:
            found["f1"] = 2 * right * labels, labels + predicted
    else:
        found["exact_match"] = right.all(axis=1), np.ones(len(labels))
        found["micro_f1"] = (2 * right * labels).sum(axis=1), (labels + predicted).sum(axis=1)
    return {name: np.stack(found[name], axis=1).astype("float64") for name in metrics if name in found}


def confusion_matrix(classification: ClassificationConfig, labels: ArrayLike, predicted: ArrayLike) -> np.ndarray:
    """int [labels, labels]: how often each label (row) was predicted as each (column)."""
    return sklearn.metrics.confusion_matrix(labels, predicted, labels=range(classification.num_labels))


def _check(classification: ClassificationConfig, labels: np.ndarray, predicted: np.ndarray) -> None:
    if not len(labels) or labels.shape != predicted.shape:
        raise ValueError(
            f"labels: needs one for each prediction, {list(predicted.shape)}. Received: {list(labels.shape)}."
        )
    if classification.problem_type == REGRESSION:
        needed, right = "finite numbers", np.isfinite(labels)
    else:
        top = classification.num_labels if classification.problem_type == SINGLE_LABEL else 2
        needed, right = f"whole numbers from 0 to {top - 1}", np.isin(labels, range(top))
    if not right.all():
        raise ValueError(f"labels: needs {needed}. Received: {labels[~right][0]}.")


def _all_equal(values: np.ndarray) -> bool:
    return bool((values == values[0]).all())


def _matthews(labels: np.ndarray, predicted: np.ndarray) -> float:
    if _all_equal(labels) or _all_equal(predicted):
        return 0.0
    return sklearn.metrics.matthews_corrcoef(labels, predicted)


def _gender_parity(labels: np.ndarray, predicted: np.ndarray) -> float:
    """The share of pairs of consecutive examples with equal predictions; the labels do not matter."""
    if len(predicted) % 2:
        raise UserError(
            "gender_parity: needs pairs of examples that differ in the gender of a pronoun, one after the other. "
            f"Received: {len(predicted)} examples. Give all of AX-g."
        )
    return float(np.mean(predicted[::2] == predicted[1::2]))


def _correlation(function: Callable[..., Any], labels: np.ndarray, predicted: np.ndarray) -> float:
    if _all_equal(labels) or _all_equal(predicted):
        return 0.0
    return function(labels.astype("float64"), predicted.astype("float64")).statistic


def _f1(labels: np.ndarray, predicted: np.ndarray, classes: Sequence[int] | None = None) -> float:
    """The mean F1 over the classes, by default those that occur as a label or a prediction."""
    return sklearn.metrics.f1_score(labels, predicted, labels=classes, average="macro", zero_division=0.0)


def _binary_f1(labels: np.ndarray, predicted: np.ndarray) -> float:
    return _f1(labels, predicted, classes=[1])


# Both pass 1-D arrays, because scikit-learn expects binary labels as a single column.
def _micro_f1(labels: np.ndarray, predicted: np.ndarray) -> float:
    return _binary_f1(labels.ravel(), predicted.ravel())


def _macro_f1(labels: np.ndarray, predicted: np.ndarray) -> float:
    return float(np.mean([_binary_f1(*columns) for columns in zip(labels.T, predicted.T)]))


# With two classes, `f1` is that of class 1; with more, the mean over those that occur as a label or a prediction.
METRICS: dict[str, dict[str, Callable[[np.ndarray, np.ndarray], float]]] = {
    SINGLE_LABEL: {
        "accuracy": sklearn.metrics.accuracy_score,
        "f1": _f1,
        "macro_f1": _f1,
        "matthews": _matthews,
        "gender_parity": _gender_parity,
    },
    MULTI_LABEL: {"micro_f1": _micro_f1, "macro_f1": _macro_f1, "exact_match": sklearn.metrics.accuracy_score},
    REGRESSION: {
        "pearson": functools.partial(_correlation, scipy.stats.pearsonr),
        "spearman": functools.partial(_correlation, scipy.stats.spearmanr),
    },
}


def by_question(questions: Sequence[Question], values: np.ndarray) -> Iterator[np.ndarray]:
    """Splits an array [candidates, …] into one part per question."""
    ends = np.cumsum([len(question.candidates) for question in questions])
    return iter(np.split(values, ends[:-1]))


def judgement_scores(questions: Sequence[Question], labels: np.ndarray, judged: np.ndarray) -> dict[str, float]:
    """MultiRC's scores (Khashabi et al. 2018): F1 over all answers, and the share of questions without a mistake.

    Args:
        labels, judged: int [candidates] of 0 and 1.
    """
    right = [
        bool((part == own).all()) for part, own in zip(by_question(questions, judged), by_question(questions, labels))
    ]
    f1a = sklearn.metrics.f1_score(labels, judged, zero_division=0.0)
    return {"f1a": float(f1a), "exact": float(np.mean(right))}


def cloze_scores(questions: Sequence[Question], chosen: Sequence[int]) -> dict[str, float]:
    """ReCoRD's scores (Zhang et al. 2018): F1 and exact match as in SQuAD, against the closest right answer.

    Args:
        chosen: the index of each question's chosen candidate.
    """
    names = [str(place) for place in range(len(questions))]  # Files joined together repeat the questions' numbers.
    references = dict(zip(names, (question.references for question in questions)))
    answers = {name: question.candidates[index] for name, question, index in zip(names, questions, chosen)}
    found = squad_v1_scores(references, answers)
    return {"f1": found["f1"] / 100, "exact": found["exact_match"] / 100}
