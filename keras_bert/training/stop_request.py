"""Requests to stop a run: signals and a time limit."""

import os
import signal
import time

# What a scheduler reads as "not done, start me again" (EX_TEMPFAIL of sysexits.h).
STOPPED_BY_SIGNAL = 75
# SIGHUP comes when the terminal is closed; Windows has none.
REQUESTS = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]
# Schedulers, terminals and launchers signal a group of processes and each of them: that is one request.
_SAME_REQUEST_SECONDS = 1.0


class StopRequest:
    """Notes SIGTERM, SIGHUP, Ctrl-C and the end of a time limit; the loop asks after every step.

    A context manager; inside it a first signal is noted, and one that comes more than a second later ends the process
    at once.

    Args:
        max_minutes: minutes after which a stop is requested; 0 for no limit.
        agree: function (number) -> its sum over all processes (see `processes.agreement`), so that all stop after the
            same step when one is asked to.
    """

    def __init__(self, max_minutes=0.0, agree=float):
        self._deadline = time.monotonic() + 60 * max_minutes if max_minutes else float("inf")
        self._agree = agree
        self._signal = self._asked_at = None
        self._previous = {}

    def __enter__(self):
        for number in REQUESTS:
            if signal.getsignal(number) != signal.SIG_IGN:  # As nohup has it.
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *exception):
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number, frame):
        now = time.monotonic()
        if self._signal is None:
            self._signal, self._asked_at = number, now
        elif now > self._asked_at + _SAME_REQUEST_SECONDS:
            os._exit(128 + number)

    def reason(self):
        """Why to stop, in words, or None. Every process of the run asks after every step."""
        own = None
        if self._signal is not None:
            own = signal.Signals(self._signal).name
        elif time.monotonic() >= self._deadline:
            own = "the time limit"
        return (own or "another worker") if self._agree(own is not None) > 0 else None

    @property
    def status(self):
        """The exit status that goes with the reason."""
        return 0 if self._signal is None else STOPPED_BY_SIGNAL
