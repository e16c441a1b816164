"""From the sums and counts of many steps to the figures that people read."""

import contextlib
import math
import time

import numpy as np


class MetricSums:
    """Adds up what `Step` returns; values stay on the device until they are asked for.

    Args:
        terms: the terms of the objective's loss.
    """

    def __init__(self, terms):
        self._terms = terms
        self._steps = []

    def add(self, result):
        self._steps.append(result)

    def __len__(self):
        return len(self._steps)

    def first_not_finite(self):
        """How many steps after the last `take` a loss or the gradient stopped being a number, from 0; or None."""
        for index, step in enumerate(self._steps):
            losses = [float(step["sums"][term]["loss"]) for term in self._terms]
            if not np.isfinite([*losses, float(step.get("grad_norm", 0.0))]).all():
                return index
        return None

    def take(self):
        """The figures over everything added since the last call, as plain floats, in reading order.

        `loss` is the total of the terms' losses; then `<term>_<metric>` for each metric.
        """
        steps, self._steps = self._steps, []
        sums, counts = {}, {}
        for step in steps:
            for term, metrics in step["sums"].items():
                counts[term] = counts.get(term, 0.0) + float(step["counts"][term])
                for name, value in metrics.items():
                    sums[term, name] = sums.get((term, name), 0.0) + float(value)
        figures = {f"{term}_{name}": value / max(counts[term], 1.0) for (term, name), value in sums.items()}
        return {"loss": sum(figures[f"{term}_loss"] for term in self._terms), **figures}


class Throughput:
    """Examples and tokens a second, and the share of the time spent waiting for data."""

    def __init__(self):
        self._reset()

    def _reset(self):
        self._began = time.perf_counter()
        self._waited = self._paused = 0.0
        self._seen = []

    @contextlib.contextmanager
    def waiting(self):
        """Around the wait for a batch."""
        began = time.perf_counter()
        yield
        self._waited += time.perf_counter() - began

    @contextlib.contextmanager
    def paused(self):
        """Around what is neither training nor waiting: validation and checkpoints."""
        began = time.perf_counter()
        yield
        self._paused += time.perf_counter() - began

    def add(self, result):
        self._seen.append((result["examples"], result["tokens"]))

    def take(self):
        """The figures since the last call."""
        # Reading the counts waits for the steps still running, so it comes before the clock is read.
        examples = sum(int(examples) for examples, _ in self._seen)
        tokens = sum(int(tokens) for _, tokens in self._seen)
        elapsed = time.perf_counter() - self._began - self._paused
        figures = {
            "examples_per_second": examples / elapsed,
            "tokens_per_second": tokens / elapsed,
            "data_wait_fraction": self._waited / elapsed,
        }
        self._reset()
        return figures


def perplexity(nats):
    """exp of a mean loss; infinite where that overflows."""
    return math.exp(nats) if nats < 700 else math.inf
