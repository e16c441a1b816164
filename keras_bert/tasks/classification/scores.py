"""From labels and a model's outputs to the metrics of GLUE, by scikit-learn and SciPy.

Every metric is a finite number, also where its formula is 0/0:

- `matthews` is 0.0 where the labels or the predictions are of one class, as in scikit-learn.
- `f1` is 0.0 where the class is neither a label nor a prediction; `micro_f1` and `macro_f1` likewise.
- `pearson` and `spearman` are 0.0 where the labels or the predictions are all equal, so also for one example, though
  SciPy gives no number there: an answer that does not depend on the text tells as little as one that is unrelated.

Ties in `spearman` share the mean of their ranks.
"""

import functools

import numpy as np
import scipy.stats
import sklearn.metrics

from keras_bert.config.heads import MULTI_LABEL, REGRESSION, SINGLE_LABEL
from keras_bert.inference.finite_outputs import require_numbers


def predictions(classification, outputs, threshold=0.0):
    """What the outputs answer.

    Args:
        classification: a `ClassificationConfig`.
        outputs: [examples, labels] logits, or probabilities.
        threshold: with several labels, above what one is predicted: 0 for logits, 0.5 for probabilities.

    Returns: [examples] int of classes, the first of equal ones; [examples, labels] int of 0 and 1 for several labels;
        [examples] float for regression.

    Raises:
        UserError: an output is no finite number.
    """
    outputs = np.asarray(outputs, "float64")
    require_numbers(outputs)
    if classification.problem_type == REGRESSION:
        return outputs[:, 0]
    if classification.problem_type == MULTI_LABEL:
        return (outputs > threshold).astype("int64")
    return outputs.argmax(axis=1)


def scores(classification, metrics, labels, predicted):
    """`{metric: float}`, in the order asked for.

    Args:
        classification: a `ClassificationConfig`.
        metrics: names, of `METRICS` for its problem type.
        labels: of the shape of `predicted`.
        predicted: what `predictions` gives.

    Raises:
        ValueError: no examples, labels that do not exist (hidden ones, too), or an unknown metric.
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


def majority_scores(classification, metrics, train_labels, labels):
    """The scores of one answer to everything: the most frequent in training, or the mean for regression.

    With several labels an answer is a set of them; of equally frequent answers the first in sorted order is taken.
    """
    train_labels = np.asarray(train_labels)
    if classification.problem_type == REGRESSION:
        answer = train_labels.mean()
    else:
        answers, counts = np.unique(train_labels, axis=0, return_counts=True)
        answer = answers[counts.argmax()]
    return scores(classification, metrics, labels, np.broadcast_to(answer, np.shape(labels)))


def one_class_throughout(predicted):
    """Whether two or more examples have all one prediction: what a training that failed looks like."""
    predicted = np.asarray(predicted)
    return len(predicted) > 1 and bool((predicted == predicted[0]).all())


def confusion_matrix(classification, labels, predicted):
    """[labels, labels] int of classes: the count of each label (row) predicted as each (column)."""
    return sklearn.metrics.confusion_matrix(labels, predicted, labels=range(classification.num_labels))


def _check(classification, labels, predicted):
    if not len(labels) or labels.shape != predicted.shape:
        raise ValueError(f"labels: needs one a prediction, {list(predicted.shape)}. Received: {list(labels.shape)}.")
    if classification.problem_type == REGRESSION:
        needed, right = "finite numbers", np.isfinite(labels)
    else:
        top = classification.num_labels if classification.problem_type == SINGLE_LABEL else 2
        needed, right = f"whole numbers from 0 to {top - 1}", np.isin(labels, range(top))
    if not right.all():
        raise ValueError(f"labels: needs {needed}. Received: {labels[~right][0]}.")


def _all_equal(values):
    return bool((values == values[0]).all())


def _matthews(labels, predicted):
    if _all_equal(labels) or _all_equal(predicted):
        return 0.0
    return sklearn.metrics.matthews_corrcoef(labels, predicted)


def _correlation(function, labels, predicted):
    if _all_equal(labels) or _all_equal(predicted):
        return 0.0
    return function(labels.astype("float64"), predicted.astype("float64")).statistic


def _f1(labels, predicted, classes=None):
    """The mean over the classes, or over those that are a label or a prediction."""
    return sklearn.metrics.f1_score(labels, predicted, labels=classes, average="macro", zero_division=0.0)


def _binary_f1(labels, predicted):
    return _f1(labels, predicted, classes=[1])


# By columns, because scikit-learn takes one column for two classes.
def _micro_f1(labels, predicted):
    return _binary_f1(labels.ravel(), predicted.ravel())


def _macro_f1(labels, predicted):
    return np.mean([_binary_f1(*columns) for columns in zip(labels.T, predicted.T)])


# Of two classes `f1` is that of class 1; of more the mean over those that are a label or a prediction.
METRICS = {
    SINGLE_LABEL: {
        "accuracy": sklearn.metrics.accuracy_score,
        "f1": _f1,
        "macro_f1": _f1,
        "matthews": _matthews,
    },
    MULTI_LABEL: {
        "micro_f1": _micro_f1,
        "macro_f1": _macro_f1,
        "exact_match": sklearn.metrics.accuracy_score,
    },
    REGRESSION: {
        "pearson": functools.partial(_correlation, scipy.stats.pearsonr),
        "spearman": functools.partial(_correlation, scipy.stats.spearmanr),
    },
}
