"""The metrics of GLUE on plain and on odd cases: one class, ties, constants, a single example."""

import warnings

import numpy as np
import pytest

from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION
from keras_bert.core.errors import UserError
from keras_bert.tasks.classification.benchmarks import GLUE, SUPERGLUE, xnli_task
from keras_bert.tasks.classification.data import _METRICS as OWN_METRICS
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.scores import METRICS, confusion_matrix, majority_scores, predictions, scores
from keras_bert.tasks.problem import all_the_same

BINARY = ClassificationConfig(("no", "yes"))
THREE = ClassificationConfig(("a", "b", "c"))
SEVERAL = ClassificationConfig(("x", "y", "z"), MULTI_LABEL)
NUMBER = ClassificationConfig(("score",), REGRESSION)


@pytest.fixture(autouse=True)
def no_warning_noise():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def one(classification, metric, labels, predicted):
    return scores(classification, [metric], labels, predicted)[metric]


def test_binary_figures_worked_by_hand():
    """tp 2, fp 1, fn 1, tn 2."""
    received = scores(BINARY, ["f1", "accuracy", "matthews"], [1, 1, 1, 0, 0, 0], [1, 1, 0, 1, 0, 0])
    assert list(received) == ["f1", "accuracy", "matthews"]
    assert received == pytest.approx({"f1": 2 / 3, "accuracy": 4 / 6, "matthews": (2 * 2 - 1 * 1) / 9})
    assert all(type(value) is float for value in received.values())


def test_f1_of_two_classes_is_that_of_class_1_and_of_more_the_mean():
    labels, predicted = [0, 0, 1, 1], [0, 0, 0, 1]
    assert one(BINARY, "f1", labels, predicted) == pytest.approx(2 / 3)
    # The third class is neither a label nor a prediction, so it does not enter the mean of 0.8 and 2/3.
    assert one(THREE, "f1", labels, predicted) == pytest.approx((0.8 + 2 / 3) / 2)


@pytest.mark.parametrize("labels, predicted", [([0, 1, 1], [1, 1, 1]), ([0, 0], [0, 1]), ([1, 1], [1, 1]), ([0], [0])])
def test_matthews_of_one_class_is_zero(labels, predicted):
    assert one(BINARY, "matthews", labels, predicted) == 0.0


@pytest.mark.parametrize(
    "labels, predicted, expected",
    [([0, 0], [0, 0], 0.0), ([1, 1], [1, 1], 1.0), ([1, 0], [0, 0], 0.0), ([1], [1], 1.0)],
)
def test_f1_of_one_class(labels, predicted, expected):
    assert one(BINARY, "f1", labels, predicted) == expected


def test_correlations_worked_by_hand():
    labels, predicted = [1.0, 2.0, 3.0, 4.0], [1.0, 4.0, 9.0, 16.0]
    received = scores(NUMBER, ["pearson", "spearman"], labels, predicted)
    assert received == pytest.approx({"pearson": 25 / np.sqrt(5 * 129), "spearman": 1.0})


def test_ties_share_the_mean_of_their_ranks():
    """Ranks 1.5 1.5 3 4 against 1 2 3 4: covariance 4.5, variances 4.5 and 5."""
    assert one(NUMBER, "spearman", [2.0, 2.0, 3.0, 5.0], [1.0, 2.0, 3.0, 4.0]) == pytest.approx(4.5 / np.sqrt(4.5 * 5))


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
@pytest.mark.parametrize("labels, predicted", [([1, 2, 3], [2, 2, 2]), ([0.1, 0.1], [1, 2]), ([1.0], [1.0])])
def test_correlation_with_a_constant_is_zero(metric, labels, predicted):
    assert one(NUMBER, metric, np.array(labels, "float32"), np.array(predicted, "float32")) == 0.0


def test_several_labels_worked_by_hand():
    labels = [[1, 0, 0], [1, 1, 0], [0, 1, 0]]
    predicted = [[1, 0, 0], [1, 0, 0], [1, 1, 0]]
    # By columns: tp 2 fp 1 fn 0; tp 1 fp 0 fn 1; nothing at all, which counts as 0.0.
    expected = {"micro_f1": 2 * 3 / (2 * 3 + 1 + 1), "macro_f1": (0.8 + 2 / 3 + 0.0) / 3, "exact_match": 1 / 3}
    assert scores(SEVERAL, list(expected), np.array(labels, "float32"), predicted) == pytest.approx(expected)


def test_one_of_several_labels_is_no_pair_of_classes():
    """scikit-learn takes one column for the two classes 0 and 1, and its micro F1 is then the accuracy."""
    only = ClassificationConfig(("toxic",), MULTI_LABEL)
    received = scores(only, METRICS[MULTI_LABEL], [[1], [0], [0], [0]], [[1], [1], [0], [0]])
    assert received == pytest.approx({"micro_f1": 2 / 3, "macro_f1": 2 / 3, "exact_match": 0.75})


def test_predictions_of_each_kind():
    assert predictions(THREE, [[0.1, 3.0, -1.0], [2.0, 2.0, 0.0]]).tolist() == [1, 0]
    assert predictions(SEVERAL, [[0.1, -3.0, 0.0]]).tolist() == [[1, 0, 0]]
    assert predictions(NUMBER, [[0.5], [-2.0]]).tolist() == [0.5, -2.0]
    with pytest.raises(UserError, match="needs finite numbers. Received: 1 of 2"):
        predictions(NUMBER, [[0.5], [np.nan]])


@pytest.mark.parametrize(
    "classification, labels, predicted, message",
    [
        (BINARY, [-1, -1], [0, 1], "labels: needs whole numbers from 0 to 1. Received: -1"),
        (THREE, [0, 3], [0, 1], "from 0 to 2. Received: 3"),
        (SEVERAL, [[0, 1, 0.5]], [[0, 1, 0]], "Received: 0.5"),
        (NUMBER, [0.1, np.nan], [0.1, 0.2], "labels: needs finite numbers. Received: nan"),
        (BINARY, [], [], "labels: needs one for each prediction"),
        (BINARY, [0, 1, 0], [0, 1], "labels: needs one for each prediction"),
    ],
)
def test_labels_that_cannot_be_scored(classification, labels, predicted, message):
    with pytest.raises(ValueError, match=message):
        scores(classification, list(METRICS[classification.problem_type]), labels, predicted)


def test_a_metric_of_another_kind_is_named():
    with pytest.raises(
        ValueError,
        match="metrics: needs some of accuracy, f1, macro_f1, matthews, gender_parity .* Received: 'pearson'",
    ):
        scores(BINARY, ["accuracy", "pearson"], [0, 1], [0, 1])


def test_majority_is_that_of_the_training_labels():
    assert majority_scores(BINARY, ["accuracy", "f1"], [0, 1, 1], [0, 0, 0, 1]) == pytest.approx(
        {"accuracy": 0.25, "f1": 0.4}
    )
    assert majority_scores(THREE, ["accuracy", "matthews"], [2, 1, 2, 1], [1, 1, 2]) == pytest.approx(
        {"accuracy": 2 / 3, "matthews": 0.0}
    )
    several = majority_scores(SEVERAL, ["exact_match"], [[1, 0, 0], [0, 1, 1], [0, 1, 1]], [[0, 1, 1], [1, 1, 1]])
    assert several == {"exact_match": 0.5}
    assert majority_scores(NUMBER, ["pearson", "spearman"], [1.0, 2.0], [0.3, 0.1]) == {"pearson": 0.0, "spearman": 0.0}


def test_one_answer_throughout_is_told():
    for answers in ([1, 1, 1], [(0, 0)] * 4):
        assert next(all_the_same(answers, repr)).startswith(f"{answers[0]!r}: the training failed.")
    for answers in ([1, 1, 0], [1], [], [(0, 1), (1, 0)]):
        assert not list(all_the_same(answers, repr))


def test_rows_of_the_confusion_matrix_are_labels():
    assert confusion_matrix(THREE, [0, 0, 1], [1, 1, 1]).tolist() == [[0, 2, 0], [0, 1, 0], [0, 0, 0]]


def test_the_metrics_that_tasks_ask_for_are_computed():
    for task in (*GLUE.values(), *SUPERGLUE.values(), xnli_task("de")):
        assert task.metrics and set(task.metrics) <= set(METRICS[task.kind])
    for kind, metrics in OWN_METRICS.items():
        assert set(metrics) <= set(METRICS[kind])
