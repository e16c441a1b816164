"""Going back to the last good checkpoint after a divergence, and leaving out the batches that led to it."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from keras_bert.config.finetuning import FinetuneTrainingConfig
from keras_bert.config.training import TrainingConfig
from keras_bert.training.budget import PhaseSlice
from keras_bert.training.metrics import MetricSums, each_step
from keras_bert.training.processes import agreement, chief_decides, digest_of, fail_together, require_same

if TYPE_CHECKING:
    from keras_bert.training.engine import Engine


class SkippedBatches(NamedTuple):
    """From a phase's step `first` on, counted from 0, its batches are `batches` further along."""

    phase: int
    first: int
    batches: int


def batch_number(skipped: Iterable[SkippedBatches], phase: int, step: int) -> int:
    """The number, within its phase, of the batch that the phase's step `step`, from 0, trains on."""
    return step + sum(entry.batches for entry in skipped if entry.phase == phase and entry.first <= step)


def next_gap(skipped: Iterable[SkippedBatches], phase: int, step: int) -> int | None:
    """The first later step of the phase whose batch does not follow the previous step's; None if there is none."""
    return min((entry.first for entry in skipped if entry.phase == phase and entry.first > step), default=None)


# What is written to metrics.jsonl about a rollback, and kept in checkpoints. `step` is the checkpoint's.
Rollback = Mapping[str, Any]


class Divergence(Exception):
    """A loss, gradient or weight that training cannot continue from.

    Args:
        step: where it was found, counted from 1.
        what: what happened, as the end of a sentence.
        good: the last step whose checkpoint can be trusted.
        figures: what was measured, for metrics.jsonl.
    """

    def __init__(self, step: int, what: str, good: int, **figures: float):
        super().__init__(f"Step {step}: {what}.")
        self.step, self.what, self.good, self.figures = step, what, good, figures


def batches_skipped_by(rollbacks: Iterable[Rollback]) -> list[SkippedBatches]:
    """The batches that a run with these rollbacks leaves out."""
    return [SkippedBatches(*entry) for rollback in rollbacks for entry in rollback["left_out"]]


def go_back(engine: Engine, divergence: Divergence, number: int, rollbacks: Sequence[Rollback]) -> int | None:
    """Restores the newest checkpoint up to step `divergence.good` and returns its step; None if there is none.

    That checkpoint then records the rollback, and later ones are gone, so a process that is stopped before the next
    checkpoint resumes in the same way. A collective.

    Args:
        number: the number of this rollback, from 1.
        rollbacks: the rollbacks before this one.
    """
    checkpoints, strategy = engine.checkpoints, engine.strategy

    def added(step: int, watch: Mapping[str, Any]) -> dict[str, Any]:
        before = watch.get("rollbacks", [])
        skipped = newly_skipped(engine.budget.phase_slices(step, divergence.step), rollbacks, before)
        rollback = {
            "step": step,
            "rollback": number,
            "bad_step": divergence.step,
            "reason": divergence.what,
            **divergence.figures,
            "left_out": skipped,
        }
        return {**watch, "rollbacks": [*before, rollback]}

    if not chief_decides(strategy, lambda: checkpoints.go_back(divergence.good, added)):
        return None
    with fail_together(agreement(strategy)):
        step = checkpoints.restore_newest()
    weights = digest_of([*engine.model.variables, *engine.optimizer.variables])
    require_same(strategy, checkpoints.folder, step=step, weights=weights)
    return step


def newly_skipped(
    slices: Sequence[PhaseSlice], rollbacks: Iterable[Rollback], kept: Iterable[Rollback]
) -> list[SkippedBatches]:
    """What to leave out so that the steps of `slices` get the batches after those they had.

    Args:
        slices: the steps from the checkpoint to the divergence.
        rollbacks: the rollbacks in force when the steps were done.
        kept: the rollbacks that the checkpoint holds, usually the same; if not, the first of them.
    """
    had, left = batches_skipped_by(rollbacks), batches_skipped_by(kept)
    skipped = [
        SkippedBatches(phase, first, batch_number(had, phase, first + steps - 1) + 1 - batch_number(left, phase, first))
        for phase, first, steps in slices
    ]
    # Phases after these were reached by earlier attempts.
    return skipped + [entry for entry in had[len(left) :] if entry.phase > slices[-1].phase]


RECENT = 50  # The logged losses that make the band.
LEAST = 10  # With fewer there is no band yet.
LEAST_SPREAD = 0.02  # Of the median: on a plateau hardly any spread is left.
_DEVIATIONS = 1.4826  # From the median absolute deviation to the standard deviation of a normal distribution.


class LossBand:
    """Says whether a logged loss is far above the recent ones.

    The upper edge is the median of the last `RECENT` logged losses plus `width` times their spread: the median absolute
    deviation, scaled to a standard deviation, but at least `LEAST_SPREAD` of the median. Single outliers move neither.
    A low loss is never outside. Each phase starts a new band, because its losses are on another level.

    Args:
        width: distance from the median to the upper edge, in spreads; 0 for no band.
        state: the `state` of an earlier band, to continue it.
    """

    def __init__(self, width: float, state: Mapping[str, Any] | None = None):
        self._width = width
        self._phase: int | None = state["phase"] if state else None
        self._losses: list[float] = list(state["losses"]) if state else []

    def edge(self, phase: int) -> float:
        """The largest loss inside the band; infinite where there is no band."""
        if not self._width or phase != self._phase or len(self._losses) < LEAST:
            return math.inf
        median = statistics.median(self._losses)
        spread = _DEVIATIONS * statistics.median(abs(loss - median) for loss in self._losses)
        return median + self._width * max(spread, LEAST_SPREAD * abs(median))

    def add(self, loss: float, phase: int) -> None:
        """Adds a logged loss, unless it is not finite; see `LossScale`."""
        if phase != self._phase:
            self._phase, self._losses = phase, []
        if math.isfinite(loss):
            self._losses = [*self._losses, loss][-RECENT:]

    def state(self) -> dict[str, Any]:
        """JSON values from which another band continues."""
        return {"phase": self._phase, "losses": self._losses}


class DivergenceWatch:
    """Looks at what the loop reads anyway, and at the weights before they are validated or saved: no step waits for it.

    What it sees is the sum over all replicas and processes, so all processes find the same.

    Args:
        run_config: `loss_band` is used, if there are `rollbacks`.
        state: the `state` saved with the restored checkpoint; None for a new run.

    Attributes:
        rollbacks: the rollbacks that the batches to come depend on.
        times: how often the run has gone back.
    """

    def __init__(self, run_config: TrainingConfig | FinetuneTrainingConfig, state: Mapping[str, Any] | None = None):
        state = state or {}
        # The last step whose loss was checked. Checkpoints of older versions do not say; all of them are trusted.
        self._last_line = state.get("last_line", sys.maxsize)
        self._band = LossBand(run_config.loss_band if run_config.rollbacks else 0.0, state.get("band"))
        self.rollbacks = list(state.get("rollbacks", []))
        self.times = self.rollbacks[-1]["rollback"] if self.rollbacks else 0

    def state(self) -> dict[str, Any]:
        """JSON values for the checkpoint."""
        return {"band": self._band.state(), "last_line": self._last_line, "rollbacks": self.rollbacks}

    def check_steps(self, done: int, sums: MetricSums, result: Mapping[str, Any]) -> None:
        """Raises `Divergence` if the loss or the gradient of a step is not finite.

        Call it before every checkpoint and line.

        Args:
            sums: the sums of the steps since the last line.
            result: the result of the last step.
        """
        index = sums.first_not_finite()
        if index is None:
            return
        step = done - len(sums) + 1 + index
        scaled = " and the lowest loss scale" if "loss_scale" in each_step(result)[-1] else ""
        raise _not_finite(step, "the loss or the gradient", result, scaled)

    def check_outcome(self, done: int, is_finite: bool, what: str, result: Mapping[str, Any]) -> None:
        """Raises `Divergence` if what the last step led to is not finite; its own loss was computed before its update.

        Args:
            what: the weights or the loss of a validation, for the message.
        """
        if not is_finite:
            raise _not_finite(done, what, result)

    def check_loss(self, done: int, loss: float, phase: int, result: Mapping[str, Any]) -> None:
        """Raises `Divergence` if a logged loss is outside the band; else adds it to the band.

        Args:
            loss: the mean since the last line.
        """
        edge = self._band.edge(phase)
        if math.isfinite(loss) and loss > edge:  # Steps that a `LossScale` skipped may leave one that is not finite.
            what = f"the loss, {loss:.4g}, is far above those before it (the limit is {edge:.4g}), at "
            # A checkpoint since the last line may have been written after the loss had begun to rise.
            raise Divergence(done, what + _rate(result), self._last_line, bad_loss=loss, limit=edge)
        self._band.add(loss, phase)
        self._last_line = done


def _not_finite(step: int, what: str, result: Mapping[str, Any], more: str = "") -> Divergence:
    return Divergence(step, f"{what} is no longer finite, at {_rate(result)}{more}", good=step - 1)


def _rate(result: Mapping[str, Any]) -> str:
    return f"a learning rate of about {float(each_step(result)[-1]['learning_rate']):.3g}"
