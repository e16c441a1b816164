"""Detects losses, gradients and weights that training must not continue from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from keras_bert.config.finetuning import FinetuneTrainingConfig
from keras_bert.config.training import TrainingConfig
from keras_bert.training.loss_band import LossBand
from keras_bert.training.metrics import MetricSums, each_step
from keras_bert.training.rollbacks import Mishap, Rollback


class MishapWatch:
    """Looks at what the loop reads anyway, and at the weights before they are validated or saved: no step waits for it.

    What it sees is the sum over all replicas and processes, so all processes find the same.

    Args:
        run_config: `loss_band`, `log_every` and `evaluate_every` are used; the band only if there are `rollbacks`.
        state: the `state` saved with the restored checkpoint; None for a new run.

    Attributes:
        rollbacks: the rollbacks that the batches to come depend on.
        times: how often the run has gone back.
    """

    rollbacks: list[Rollback]
    times: int

    def __init__(self, run_config: TrainingConfig | FinetuneTrainingConfig, state: Mapping[str, Any] | None = None):
        state = state or {}
        self._run_config = run_config
        self._band = LossBand(run_config.loss_band if run_config.rollbacks else 0.0, state.get("band"))
        self.rollbacks = list(state.get("rollbacks", []))
        self.times = self.rollbacks[-1]["rollback"] if self.rollbacks else 0

    def state(self) -> dict[str, Any]:
        """JSON values for the checkpoint."""
        return {"band": self._band.state(), "rollbacks": self.rollbacks}

    def check_steps(self, done: int, sums: MetricSums, result: Mapping[str, Any]) -> None:
        """Raises `Mishap` if the loss or the gradient of a step is not finite. Call before every checkpoint and line.

        Args:
            done: steps done.
            sums: of the steps since the last line.
            result: of the last step.
        """
        index = sums.first_not_finite()
        if index is None:
            return
        step = done - len(sums) + 1 + index
        scaled = " and the lowest loss scale" if "loss_scale" in each_step(result)[-1] else ""
        raise _not_finite(step, "the loss or the gradient", result, scaled)

    def check_outcome(self, done: int, is_finite: bool, what: str, result: Mapping[str, Any]) -> None:
        """Raises `Mishap` if what the last step led to is not finite; its own loss was computed before it.

        Args:
            done: steps done.
            is_finite: whether it is.
            what: the weights or the loss of a validation, for the message.
            result: of the last step.
        """
        if not is_finite:
            raise _not_finite(done, what, result)

    def check_loss(self, done: int, loss: float, phase: int, result: Mapping[str, Any]) -> None:
        """Raises `Mishap` if a logged loss is outside the band, which it then joins if it is not.

        Args:
            done: steps done.
            loss: the mean since the last line.
            phase: of the last step.
            result: of the last step.
        """
        edge = self._band.edge(phase)
        if math.isfinite(loss) and loss > edge:  # Not finite are steps that a `LossScale` skipped.
            what = f"the loss, {loss:.4g}, is far above those before it (the limit is {edge:.4g}), at "
            # A checkpoint since the last line may have been written after the loss had begun to rise.
            raise Mishap(done, what + _rate(result), self._last_line(done), bad_loss=loss, limit=edge)
        self._band.add(loss, phase)

    def _last_line(self, done: int) -> int:
        """The last step before `done` whose loss was checked."""
        every = (self._run_config.log_every, self._run_config.evaluate_every)
        return max((done - 1) // steps * steps for steps in every)


def _not_finite(step: int, what: str, result: Mapping[str, Any], more: str = "") -> Mishap:
    return Mishap(step, f"{what} is no longer finite, at {_rate(result)}{more}", good=step - 1)


def _rate(result: Mapping[str, Any]) -> str:
    return f"a learning rate of about {float(each_step(result)[-1]['learning_rate']):.3g}"
