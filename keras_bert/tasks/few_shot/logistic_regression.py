"""The logistic head of few-shot classification, fitted to the vectors of the training texts."""

import numpy as np
import sklearn.linear_model

_TOLERANCE, _MOST_ITERATIONS = 1e-9, 10_000


def fit_logistic_regression(vectors: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit logistic regression with SetFit's L2 penalty; returns (kernel [hidden, classes], bias [classes]).

    The problem is convex: its solution depends only on the vectors and labels.

    Args:
        vectors: [texts, hidden].
        labels: int [texts], from 0 to classes - 1, each of them at least once.
    """
    regression = sklearn.linear_model.LogisticRegression(C=1.0, tol=_TOLERANCE, max_iter=_MOST_ITERATIONS)
    regression.fit(np.asarray(vectors, "float64"), labels)
    kernel, bias = regression.coef_.T, regression.intercept_
    if len(bias) == 1:  # With two classes, it is the logit of the second against the first.
        kernel, bias = (np.concatenate([-half, half], axis=-1) for half in (kernel / 2, bias / 2))
    return kernel, bias
