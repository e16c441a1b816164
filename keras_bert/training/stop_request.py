"""Requests to stop a run: signals and a time limit."""

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

# Tells a scheduler "not done, start me again" (EX_TEMPFAIL of sysexits.h).
STOPPED_BY_SIGNAL = 75
# What a process adds to the sum over all processes: far apart, so that the sum shows whether any got a signal.
_TIME_IS_UP, _SIGNALLED = 1.0, 2.0**16
# SIGHUP arrives when the terminal is closed; Windows does not have it.
REQUESTS: list[signal.Signals] = [
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)
]
# Schedulers, terminals and launchers signal both a process group and each process in it: that is one request.
_SAME_REQUEST_SECONDS = 1.0


class StopRequest:
    """Records SIGTERM, SIGHUP, Ctrl-C and the end of a time limit; the loop polls it after every step.

    A context manager: inside it the first signal is recorded, and another one more than a second later ends the
    process at once. SIGHUP does not: whoever closes the terminal after Ctrl-C still wants the checkpoint.

    Args:
        max_minutes: minutes after which a stop is requested; 0 for no limit.
        started_at: when these minutes begin, from `time.monotonic`; None for now.
        agree: sums a number over all processes (see `processes.agreement`), so that all of them stop after the same
            step as soon as one is asked to.
    """

    def __init__(
        self, max_minutes: float = 0.0, agree: Callable[[float], float] = float, started_at: float | None = None
    ):
        started_at = time.monotonic() if started_at is None else started_at
        self._deadline = started_at + 60 * max_minutes if max_minutes else float("inf")
        self._agree = agree
        self._signal: int | None = None
        self._asked_at = 0.0
        self._agreed = 0.0  # The sum at the last look.
        self._previous: dict[signal.Signals, Any] = {}  # What `signal.signal` returned.

    def __enter__(self) -> "StopRequest":
        # Only the main thread may handle signals; a run started in another is stopped only by its time limit.
        is_main = threading.current_thread() is threading.main_thread()
        for number in REQUESTS if is_main else ():
            # nohup ignores SIGHUP. None stands for a handler of a host of Python, such as R, which cannot be restored.
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._signal is None:
            self._signal, self._asked_at = number, now
        elif now > self._asked_at + _SAME_REQUEST_SECONDS and signal.Signals(number).name != "SIGHUP":
            os._exit(128 + number)

    def reason(self) -> str | None:
        """Why to stop, in words, or None. A collective: every process must call it after every step."""
        own, code = None, 0.0
        if self._signal is not None:
            own, code = signal.Signals(self._signal).name, _SIGNALLED
        elif time.monotonic() >= self._deadline:
            own, code = "the time limit", _TIME_IS_UP
        self._agreed = self._agree(code)
        return (own or "another worker") if self._agreed > 0 else None

    @property
    def status(self) -> int:
        """The exit status for the last reason, the same in every process: a signal to one of them counts for all."""
        return STOPPED_BY_SIGNAL if self._agreed >= _SIGNALLED else 0
