"""When a checkpoint is due by the clock, whatever the steps are worth on this machine."""

import time


class CheckpointClock:
    """Minutes since the last checkpoint, or since this was made.

    Args:
        minutes: after so many a checkpoint is due; 0 for never.
        agree: function (number) -> its sum over all processes (see `processes.agreement`), so that all save at the same
            step when the clock of one says so.
    """

    def __init__(self, minutes=0.0, agree=float):
        self._seconds = 60.0 * minutes if minutes else float("inf")
        self._agree = agree
        self.saved()

    def saved(self):
        """To be called after every checkpoint."""
        self._last = time.monotonic()

    def is_due(self):
        """Whether a checkpoint is due. Every process of the run asks after the same steps."""
        return self._agree(time.monotonic() - self._last >= self._seconds) > 0
