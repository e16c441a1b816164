"""The band in which a logged loss is expected to stay."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import Any

RECENT = 50  # The logged losses that make the band.
LEAST = 10  # With fewer there is no band yet.
LEAST_SPREAD = 0.02  # Of the median: on a plateau hardly any spread is left.
_DEVIATIONS = 1.4826  # From the median absolute deviation to the standard deviation of a normal distribution.


class LossBand:
    """Says whether a logged loss is far above the recent ones.

    The upper edge is the median of the last `RECENT` logged losses plus `width` times their spread: the median absolute
    deviation, scaled to a standard deviation, but at least `LEAST_SPREAD` of the median. Neither is moved by single
    outliers. A low loss is never outside. Each phase starts a new band, because its loss is another one.

    Args:
        width: half the width of the band in spreads; 0 for no band.
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
        """Adds a logged loss; one that is not finite does not count, see `LossScale`."""
        if phase != self._phase:
            self._phase, self._losses = phase, []
        if math.isfinite(loss):
            self._losses = [*self._losses, loss][-RECENT:]

    def state(self) -> dict[str, Any]:
        """JSON values from which another band continues."""
        return {"phase": self._phase, "losses": self._losses}
