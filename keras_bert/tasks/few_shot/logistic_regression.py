"""The logistic head of few-shot classification, solved on the vectors of the training texts."""

import numpy as np
import sklearn.linear_model

_TOLERANCE, _MOST_ITERATIONS = 1e-9, 10_000


def solved(vectors: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(kernel [hidden, classes], bias [classes]) of the logistic regression with the L2 penalty that SetFit has.

    The problem is convex: its solution depends on nothing but the vectors.

    Args:
        vectors: [texts, hidden].
        labels: int [texts], from 0 to classes - 1, each of them at least once.
    """
    regression = sklearn.linear_model.LogisticRegression(C=1.0, tol=_TOLERANCE, max_iter=_MOST_ITERATIONS)
    regression.fit(np.asarray(vectors, "float64"), labels)
    kernel, bias = regression.coef_.T, regression.intercept_
    if len(bias) == 1:  # Of two classes, the logit of the second against the first.
        kernel, bias = (np.concatenate([-half, half], axis=-1) for half in (kernel / 2, bias / 2))
    return kernel, bias
