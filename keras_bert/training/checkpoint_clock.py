"""When a checkpoint is due by the clock, however fast the steps are on this machine."""

import time
from collections.abc import Callable


class CheckpointClock:
    """The time since the last checkpoint, or since this object was created.

    Args:
        minutes: time between checkpoints; 0 for never.
        agree: sums a number over all processes (see `processes.agreement`), so that all of them save at the same step
            as soon as one of their clocks says so.
    """

    def __init__(self, minutes: float = 0.0, agree: Callable[[float], float] = float):
        self._seconds = 60.0 * minutes if minutes else float("inf")
        self._agree = agree
        self.saved()

    def saved(self) -> None:
        """Call after every checkpoint."""
        self._last = time.monotonic()

    def is_due(self) -> bool:
        """Whether a checkpoint is due. A collective: every process must call it after the same steps."""
        return self._agree(time.monotonic() - self._last >= self._seconds) > 0
