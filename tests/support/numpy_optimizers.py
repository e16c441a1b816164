"""The optimizers as their papers write them, in NumPy and float64: the value of one tensor after each step."""

import numpy as np


def adamw(value, gradients, rate, decay, beta_1=0.9, beta_2=0.999, epsilon=1e-6):
    """Loshchilov and Hutter 2019, algorithm 2."""
    value, first, second = value.astype("float64"), 0.0, 0.0
    for step, gradient in enumerate(gradients.astype("float64"), start=1):
        first = beta_1 * first + (1 - beta_1) * gradient
        second = beta_2 * second + (1 - beta_2) * gradient**2
        update = (first / (1 - beta_1**step)) / (np.sqrt(second / (1 - beta_2**step)) + epsilon)
        value = value - rate * (update + decay * value)
        yield value


def lamb(value, gradients, rate, decay, adapts, bias_correction=True, beta_1=0.9, beta_2=0.999, epsilon=1e-6):
    """You et al. 2020, algorithm 2; `adapts` is False for a tensor outside the trust ratio."""
    value, first, second = value.astype("float64"), 0.0, 0.0
    for step, gradient in enumerate(gradients.astype("float64"), start=1):
        first = beta_1 * first + (1 - beta_1) * gradient
        second = beta_2 * second + (1 - beta_2) * gradient**2
        corrections = (1 - beta_1**step, 1 - beta_2**step) if bias_correction else (1.0, 1.0)
        ratio = (first / corrections[0]) / (np.sqrt(second / corrections[1]) + epsilon)
        update = ratio + decay * value
        trust = np.linalg.norm(value) / np.linalg.norm(update) if adapts else 1.0
        value = value - rate * trust * update
        yield value


def adafactor(value, gradients, rate, decay, relative_step=False, beta_1=0.0):
    """Shazeer and Stern 2018, algorithms 4 (a matrix) and 5 (a vector), decay as in torch."""
    value, first = value.astype("float64"), 0.0
    rows = columns = whole = 0.0
    for step, gradient in enumerate(gradients.astype("float64"), start=1):
        beta_2 = 1 - step**-0.8
        squares = gradient**2 + 1e-30
        if value.ndim == 2:
            rows = beta_2 * rows + (1 - beta_2) * squares.sum(axis=1)
            columns = beta_2 * columns + (1 - beta_2) * squares.sum(axis=0)
            second = np.outer(rows, columns) / rows.sum()
        else:
            second = whole = beta_2 * whole + (1 - beta_2) * squares
        update = gradient / np.sqrt(second)
        update = update / max(1.0, np.sqrt(np.mean(update**2)))
        scale = max(1e-3, np.sqrt(np.mean(value**2))) * min(rate, step**-0.5) if relative_step else rate
        first = beta_1 * first + (1 - beta_1) * scale * update
        value = value - rate * decay * value - first
        yield value


def moving_average(start, values, decay):
    average = start.astype("float64")
    for value in values:
        average = decay * average + (1 - decay) * value
        yield average
