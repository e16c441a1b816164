"""Keras callbacks in a run, whose loop is not `fit`: for early stops, and for your own loggers."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import keras

_VALIDATION = "eval_"


class Callbacks:
    """Calls Keras callbacks as `fit` would, with the run's steps as batches and its validations as epochs.

    Their `params` have the `steps` of the run and its `epochs`, both None in a run limited by minutes.

    | method | called | logs |
    | --- | --- | --- |
    | `on_train_begin`, `on_train_end` | around the steps | none |
    | `on_train_batch_end(step)` | after each step or loop of steps; `step` counts from 0 | none |
    | `on_epoch_end(number)` | after each validation | its figures as `val_…`, and the latest of training |

    `callback.model.stop_training = True` ends the run after the step: it validates, saves and writes its results. So
    `keras.callbacks.EarlyStopping("val_loss")` works. Weights must not be changed.

    They are not told when a run goes back to a checkpoint (`training.rollbacks`): they are called again for its steps,
    and what they have counted or kept stays.
    """

    def __init__(self, callbacks: Iterable[keras.callbacks.Callback] = ()):
        self._callbacks = list(callbacks)
        self._model: keras.Model | None = None
        self._validations = 0
        self._figures: dict[str, Any] = {}

    def __bool__(self) -> bool:
        return bool(self._callbacks)

    @property
    def stop(self) -> bool:
        """Whether a callback has asked for the end of the run."""
        return self._model is not None and self._model.stop_training

    def begin(self, model: keras.Model, steps: int | None, evaluate_every: int) -> None:
        """Call before the first step, if there are callbacks; `steps` is the length of the run, None if unknown."""
        self._model = model
        model.stop_training = False
        epochs = steps and math.ceil(steps / evaluate_every)
        for callback in self._callbacks:
            callback.set_model(model)
            callback.set_params({"verbose": 1, "epochs": epochs, "steps": steps})
            callback.on_train_begin()

    def step(self, done: int) -> None:
        """Call when `done` steps are done."""
        for callback in self._callbacks:
            callback.on_train_batch_end(done - 1)

    def figures(self, figures: Mapping[str, float]) -> None:
        """Call with the figures of each line of metrics.jsonl."""
        is_validation = any(name.startswith(_VALIDATION) for name in figures)
        self._figures |= {
            f"val_{name.removeprefix(_VALIDATION)}" if name.startswith(_VALIDATION) else name: value
            for name, value in figures.items()
        }
        if is_validation:
            for callback in self._callbacks:
                callback.on_epoch_end(self._validations, dict(self._figures))
            self._validations += 1

    def end(self) -> None:
        """Call after the last step."""
        for callback in self._callbacks:
            callback.on_train_end()
