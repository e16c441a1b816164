"""Whether one model scores better than another, by a paired bootstrap."""

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics

from keras_bert.studies import paired_bootstrap
from keras_bert.studies.paired_bootstrap import draws, paired_difference
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.scores import scores_by_example

BINARY = ClassificationConfig(("0", "1"), "single_label_classification")
NUMBER = ClassificationConfig(("score",), "regression")
SCORES = {
    "accuracy": (BINARY, sklearn.metrics.accuracy_score),
    "f1": (BINARY, sklearn.metrics.f1_score),
    "spearman": (NUMBER, lambda labels, answers: scipy.stats.spearmanr(labels, answers).statistic),
    "pearson": (NUMBER, lambda labels, answers: scipy.stats.pearsonr(labels, answers).statistic),
}


def answers_of(labels, metric, noise, random, seeds=3):
    """[seeds, examples]: the labels, a share of them changed, so that many are equal."""
    drawn = random.random((seeds, len(labels)))
    if metric in ("accuracy", "f1"):
        return np.where(drawn < noise, 1 - labels, labels)
    return np.round(labels + 8 * noise * drawn)


def made(metric, noises, examples=40):
    """(labels, [answers], [examples of the metric]) of a model for each share of noise."""
    random = np.random.default_rng(1)
    top = 2 if metric in ("accuracy", "f1") else 6
    labels = random.integers(top, size=examples)
    answers = [answers_of(labels, metric, noise, random) for noise in noises]
    head, _ = SCORES[metric]
    pairs = [np.stack([scores_by_example(head, [metric], labels, one)[metric] for one in seeds]) for seeds in answers]
    return labels, answers, pairs


@pytest.mark.parametrize("metric", SCORES)
def test_the_interval_is_that_of_plain_loops_over_the_same_draws(metric, monkeypatch):
    """Each sample is scored by itself, by the functions that score the tasks; chunks must not be counted twice."""
    monkeypatch.setattr(paired_bootstrap, "_DRAWN_AT_ONCE", 40 * 20)
    labels, (ours, theirs), pairs = made(metric, [0.1, 0.3])
    _, score = SCORES[metric]
    found = []
    for of_seeds, of_examples in draws(3, 40, 50, seed=5):
        for seeds, chosen in zip(of_seeds, of_examples):
            gains = [score(labels[chosen], ours[n][chosen]) - score(labels[chosen], theirs[n][chosen]) for n in seeds]
            found.append(sum(gains) / len(gains))
    assert len(found) == 50
    expected = np.mean([score(labels, ours[n]) - score(labels, theirs[n]) for n in range(3)])
    difference = paired_difference(*pairs, metric, resamples=50, seed=5)
    np.testing.assert_allclose(difference, [expected, *np.percentile(found, (2.5, 97.5))], atol=1e-12)


@pytest.mark.parametrize("metric", SCORES)
def test_a_planted_difference_is_found_and_equal_models_have_none(metric):
    """If the models did not share the samples, the interval would be wide around equal models."""
    *_, (good, bad) = made(metric, [0.05, 0.5], examples=400)
    found = paired_difference(good, bad, metric, resamples=500)
    assert found.is_one and 0 < found.low < found.mean < found.high
    assert paired_difference(bad, good, metric, resamples=500).is_one
    same = paired_difference(good, good, metric, resamples=500)
    assert same == (0.0, 0.0, 0.0) and not same.is_one


def test_chance_is_seldom_taken_for_a_difference():
    """For models that are equally good, on other draws of the examples, about one of twenty intervals leaves out 0."""
    random = np.random.default_rng(2)
    right = random.random((200, 2, 1, 300)) < 0.7
    pairs = np.stack([right, np.ones_like(right)], axis=-1).astype(float)
    wrong = sum(paired_difference(*one, "accuracy", resamples=300, seed=n).is_one for n, one in enumerate(pairs))
    assert 3 <= wrong <= 20


def test_constant_answers_are_correlated_with_nothing():
    """Otherwise a seed that failed would make the whole interval NaN."""
    labels = np.arange(8.0)
    constant, right = (np.stack([labels, answers], axis=1)[None] for answers in (np.full(8, 0.1), labels))
    for metric in ("pearson", "spearman"):
        found = paired_difference(right, constant, metric, resamples=50)
        np.testing.assert_allclose(found, (1.0, 1.0, 1.0))
