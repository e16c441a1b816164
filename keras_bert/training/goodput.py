"""Goodput: the share of a run's wall time that went into steps, over all of its starts."""

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

# The parts of the wall time by the figures of a line of metrics.jsonl that hold their seconds.
PARTS = {
    "start_seconds": "start",
    "seconds": "steps",
    "eval_seconds": "validation",
    "checkpoint_seconds": "checkpoints",
    "lost_seconds": "lost",
}
_STEPS, _WAIT = "steps", "data_wait"
_UTILIZATION = "flops_utilization"


class Goodput:
    """Where the wall time went, by the figures in metrics.jsonl, which outlive the process.

    Steps that are done again, after a kill or a rollback, were lost. What a process did after its last line is unknown
    to the next one and not counted.

    Args:
        lines: the lines that an earlier start left.
        step: the steps done at the start.
        started_at: when the command began, from `time.monotonic`; None for now.
    """

    def __init__(self, lines: Iterable[Mapping[str, Any]] = (), step: int = 0, started_at: float | None = None):
        self._counted_until = time.monotonic() if started_at is None else started_at
        self._pending: defaultdict[str, float] = defaultdict(float)  # Seconds for the next line.
        self._lines = [(line["step"], _parts(line)) for line in lines]
        self._drop_after(step)

    def _uncounted(self) -> float:
        """The seconds since the last ones that were counted."""
        now = time.monotonic()
        seconds, self._counted_until = now - self._counted_until, now
        return seconds

    def begin(self) -> None:
        """Call before the first step: what came before was the start."""
        self._pending["start_seconds"] += self._uncounted()

    @contextlib.contextmanager
    def checkpointing(self) -> Iterator[None]:
        """A block that writes a checkpoint."""
        started_at = time.monotonic()
        yield
        seconds = time.monotonic() - started_at
        self._pending["checkpoint_seconds"] += seconds
        self._counted_until += seconds

    def rewind(self, step: int) -> None:
        """Call after a rollback: counts as lost what was done after `step`, and all time since the last line."""
        self._pending["lost_seconds"] += self._uncounted()
        self._drop_after(step)

    def _drop_after(self, step: int) -> None:
        lost = [parts for done, parts in self._lines if done > step]
        self._lines = [(done, parts) for done, parts in self._lines if done <= step]
        self._seconds: defaultdict[str, float] = defaultdict(float)  # Of all lines.
        for _, parts in self._lines:
            _add(self._seconds, parts)
        if seconds := sum(value for parts in lost for part, value in parts.items() if part != _UTILIZATION):
            self._pending["lost_seconds"] += seconds

    def line(self, step: int, figures: Mapping[str, float]) -> dict[str, float]:
        """Counts a line's `figures`; returns the ones to add to it, including `goodput`, the share so far."""
        added = dict(self._pending)
        self._pending.clear()
        self._counted_until = time.monotonic()
        self._lines.append((step, _parts({**figures, **added})))
        _add(self._seconds, self._lines[-1][1])
        return {**added, "goodput": self.summary()["share"]}

    def summary(self) -> dict[str, Any]:
        """The `share` of steps, the `seconds` of each part, and the mean `flops_utilization` if lines have it."""
        seconds = self._seconds.copy()
        _add(seconds, _parts(self._pending))
        utilized = seconds.pop(_UTILIZATION, 0.0)
        trained, whole = seconds[_STEPS] + seconds[_WAIT], sum(seconds.values())
        return {
            "share": seconds[_STEPS] / whole if whole else 0.0,
            "seconds": {part: round(seconds[part], 1) for part in (*PARTS.values(), _WAIT)},
            **({_UTILIZATION: utilized / trained} if utilized else {}),
        }


def _add(seconds: defaultdict[str, float], parts: Mapping[str, float]) -> None:
    for part, value in parts.items():
        seconds[part] += value


def _parts(figures: Mapping[str, Any]) -> dict[str, float]:
    """The seconds of each part in a line's figures, and the seconds of its steps times their `flops_utilization`.

    Waits for data are part of what is logged as the seconds of steps.
    """
    parts = {part: float(figures[name]) for name, part in PARTS.items() if name in figures}
    seconds = parts.get(_STEPS, 0.0)
    waited = seconds * figures.get("data_wait_fraction", 0.0)
    utilized = seconds * figures.get(_UTILIZATION, 0.0)
    return {**parts, _STEPS: seconds - waited, _WAIT: waited, _UTILIZATION: utilized}
