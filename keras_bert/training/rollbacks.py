"""Going back to the last good checkpoint after a mishap, and leaving out the batches that led to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from keras_bert.training.budget import Stretch
from keras_bert.training.left_out import LeftOut, batch_number
from keras_bert.training.processes import agreement, chief_says, digest_of, failing_together, require_same

if TYPE_CHECKING:
    from keras_bert.training.engine import Engine

# What is written to metrics.jsonl about a rollback, and kept in checkpoints. `step` is the checkpoint's.
Rollback = Mapping[str, Any]


class Mishap(Exception):
    """A loss or a gradient that training cannot continue from.

    Args:
        step: where it was found, counted from 1.
        what: what happened, as the end of a sentence.
        good: the last step whose checkpoint can be trusted.
        figures: what was measured, for metrics.jsonl.
    """

    def __init__(self, step: int, what: str, good: int, **figures: float):
        super().__init__(f"Step {step}: {what}.")
        self.step, self.what, self.good, self.figures = step, what, good, figures


def left_out_by(rollbacks: Iterable[Rollback]) -> list[LeftOut]:
    """What a run with these rollbacks leaves out."""
    return [LeftOut(*entry) for rollback in rollbacks for entry in rollback["left_out"]]


def go_back(
    engine: Engine, mishap: Mishap, number: int, rollbacks: Sequence[Rollback], report: Callable[[str], object]
) -> int | None:
    """Restores the newest checkpoint up to step `mishap.good` and returns its step; None if there is none.

    The checkpoint then holds the rollback, and later ones are gone, so a process that is stopped before the next one
    resumes in the same way. A collective.

    Args:
        engine: what trains.
        mishap: what happened.
        number: of this rollback, from 1.
        rollbacks: the rollbacks before this one.
        report: receives a line of text on a damaged checkpoint.
    """
    checkpoints, strategy = engine.checkpoints, engine.strategy

    def added(step: int, watch: Mapping[str, Any]) -> dict[str, Any]:
        before = watch.get("rollbacks", [])
        left_out = newly_left_out(engine.budget.stretches(step, mishap.step), rollbacks, before)
        rollback = {
            "step": step,
            "rollback": number,
            "bad_step": mishap.step,
            "reason": mishap.what,
            **mishap.figures,
            "left_out": left_out,
        }
        return {**watch, "rollbacks": [*before, rollback]}

    if not chief_says(strategy, lambda: checkpoints.go_back(mishap.good, added, report)):
        return None
    with failing_together(agreement(strategy)):
        step = checkpoints.restore_newest(report)
    weights = digest_of([*engine.model.variables, *engine.optimizer.variables])
    require_same(strategy, checkpoints.folder, step=step, weights=weights)
    return step


def newly_left_out(
    stretches: Iterable[Stretch], rollbacks: Iterable[Rollback], kept: Iterable[Rollback]
) -> list[LeftOut]:
    """What to leave out so that the steps of `stretches` get the batches that come after those they had.

    Args:
        stretches: the steps from the checkpoint to the mishap.
        rollbacks: those in force when the steps were done.
        kept: those that the checkpoint holds; usually the same.
    """
    had, left = left_out_by(rollbacks), left_out_by(kept)
    return [
        LeftOut(phase, first, batch_number(had, phase, first + steps - 1) + 1 - batch_number(left, phase, first))
        for phase, first, steps in stretches
    ]
