"""Faults in training runs: losses and gradients that are wrong at chosen steps, and what each step trained on."""

import contextlib
import hashlib

import numpy as np

from keras_bert.training.loop import Loop
from keras_bert.training.step_loop import LoopBatches


class _Watched:
    """A step whose results may be changed; everything else is the step's."""

    def __init__(self, step, seen, faults):
        self._step, self._seen, self._faults, self.objective = step, seen, faults, step.objective

    def train(self, batch, step):
        first = int(step)
        if not isinstance(batch, LoopBatches):
            parts = [part for name in sorted(batch) for part in getattr(batch[name], "values", (batch[name],))]
            content = b"".join(np.asarray(part).tobytes() for part in parts)
            self._seen.append((first, hashlib.sha256(content).hexdigest()))
        return self._changed(self._step.train(batch, step), first)

    def _changed(self, result, first):
        for number in range(result.get("steps", 1)):
            if changes := self._faults.get(first + number + 1):
                result = changes.pop(0)(result, number)
        return result


def no_number(result, number):
    """The gradient of a step is not finite."""
    norm = np.array(result["grad_norm"])
    norm[(number,) * norm.ndim] = np.nan
    return {**result, "grad_norm": norm}


def high_loss(result, number):
    """The loss of a step is a hundred times as high."""
    term = next(iter(result["sums"]))
    sums = {**result["sums"], term: {**result["sums"][term], "loss": 100.0 * np.array(result["sums"][term]["loss"])}}
    return {**result, "sums": sums}


@contextlib.contextmanager
def faults(monkeypatch, at):
    """Makes the faults `{step, from 1: a change for each time that the step is done}`.

    Yields the list of (steps before, digest of the batch) of all steps.
    """
    seen, left = [], {step: list(changes) for step, changes in at.items()}
    train = Loop._train

    def watched(loop, *arguments):
        step = loop.step
        loop.step = _Watched(step, seen, left)
        try:
            return train(loop, *arguments)
        finally:
            loop.step = step

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "_train", watched)
        yield seen
