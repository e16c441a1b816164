"""The mean of several models' probabilities, as the logits of one."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import expit, log_softmax, logit, logsumexp


def mean_of_softmax(logits: Sequence[np.ndarray]) -> np.ndarray:
    """[…, classes]: the logarithm of the mean of the softmaxes of several arrays [..., classes]; -inf stays -inf."""
    return logsumexp([log_softmax(np.asarray(one, "float64"), axis=-1) for one in logits], axis=0) - np.log(len(logits))


def mean_of_sigmoids(logits: Sequence[np.ndarray]) -> np.ndarray:
    """[…]: the logit of the mean of the sigmoids of several arrays [...], finite ones if theirs are."""
    mean = np.mean([expit(np.asarray(one, "float64")) for one in logits], axis=0)
    tiny = np.finfo(mean.dtype).eps
    return logit(np.clip(mean, tiny, 1 - tiny))


def mean_rows(mean: Callable[[Sequence[np.ndarray]], np.ndarray], models: Sequence[Any]) -> Any:
    """`mean` of several models' outputs: of arrays [rows, …], or of lists with an array for each row."""
    if isinstance(models[0], np.ndarray):
        return mean(models)
    return [mean(rows) for rows in zip(*models, strict=True)]
