"""Whether one model scores better than another: a paired bootstrap over dev examples and seeds.

Both models are scored on the same resamples: examples are drawn with replacement, as many as there are (Koehn 2004),
and so are seeds, which both models share (Sellam et al. 2022, "The MultiBERTs", section 3).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

RESAMPLES = 10_000
_DRAWN_AT_ONCE = 2_000_000  # Bounds the memory: several arrays of this many float64.


class Difference(NamedTuple):
    """The gain of a model's score, from 0 to 1, over another's: the mean over the seeds, and its 95% interval."""

    mean: float
    low: float
    high: float

    @property
    def is_one(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


def paired_difference(
    model: np.ndarray, control: np.ndarray, metric: str, resamples: int = RESAMPLES, seed: int = 0
) -> Difference:
    """The difference between two models in a metric.

    Args:
        model, control: float [seeds, examples, 2], what `Problem.by_example` gives for the metric, of the same seeds
            and examples in the same order.
        resamples: the number of resamples.
        seed: the seed of the draws; the same one gives the same interval.
    """
    seeds, examples = model.shape[:2]

    def gains(weights: np.ndarray) -> np.ndarray:
        return sample_scores(model, metric, weights) - sample_scores(control, metric, weights)

    found = [
        np.take_along_axis(gains(_counts(of_examples)), of_seeds, axis=1).mean(axis=1)
        for of_seeds, of_examples in draws(seeds, examples, resamples, seed)
    ]
    low, high = np.percentile(np.concatenate(found), (2.5, 97.5))
    return Difference(float(gains(np.ones((1, examples))).mean()), float(low), float(high))


def draws(seeds: int, examples: int, resamples: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields (int [some, seeds], int [some, examples]): the indices of the seeds and examples in some resamples."""
    random, at_once = np.random.default_rng(seed), max(_DRAWN_AT_ONCE // examples, 1)
    for done in range(0, resamples, at_once):
        some = min(at_once, resamples - done)
        yield random.integers(seeds, size=(some, seeds)), random.integers(examples, size=(some, examples))


def sample_scores(models: np.ndarray, metric: str, weights: np.ndarray) -> np.ndarray:
    """[samples, seeds]: the scores of a model's seeds on samples of the examples.

    Args:
        models: [seeds, examples, 2], see `paired_difference`.
        weights: [samples, examples], how often each sample contains each example.
    """
    if metric in ("pearson", "spearman"):
        is_ranked = metric == "spearman"
        return np.stack([_correlations(pairs, weights, is_ranked) for pairs in models], axis=1)
    above, below = (weights @ models[:, :, part].T for part in (0, 1))
    return _divided(above, below)


def _counts(drawn: np.ndarray) -> np.ndarray:
    """float64 [samples, examples]: how often each example was drawn."""
    samples, examples = drawn.shape
    places = drawn + examples * np.arange(samples)[:, None]
    return np.bincount(places.ravel(), minlength=drawn.size).reshape(drawn.shape).astype("float64")


def _correlations(pairs: np.ndarray, weights: np.ndarray, is_ranked: bool) -> np.ndarray:
    """[samples]: the correlations of the columns of [examples, 2], or of their ranks; 0 where one is constant."""
    # If all values are equal, their differences to the first are exactly 0, and so is the correlation.
    columns = [_mean_ranks(column, weights) if is_ranked else (column - column[0])[None] for column in pairs.T]
    size = weights.sum(axis=1, keepdims=True)
    first, second = (column - (weights * column).sum(axis=1, keepdims=True) / size for column in columns)
    products = [
        (weights * one * other).sum(axis=1) for one, other in ((first, second), (first, first), (second, second))
    ]
    return _divided(products[0], np.sqrt(products[1] * products[2]))


def _mean_ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[samples, examples]: the rank of each value in each sample; equal ones share the mean of theirs."""
    _, groups = np.unique(values, return_inverse=True)
    order = np.argsort(groups, kind="stable")
    sizes = np.add.reduceat(weights[:, order], np.searchsorted(groups[order], np.arange(groups.max() + 1)), axis=1)
    return (np.cumsum(sizes, axis=1) - (sizes - 1) / 2)[:, groups]


def _divided(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """A quotient in which 0/0 counts as 0, as in the metrics."""
    return np.divide(above, below, out=np.zeros_like(above), where=below != 0)
