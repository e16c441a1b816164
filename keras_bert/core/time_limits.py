"""Waits with a time limit for what may never answer: a TPU, a server."""

import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from typing import TypeVar

Result = TypeVar("Result")

PROBE_SECONDS = 1.0


def within(seconds: float, function: Callable[[], Result]) -> Result | Exception | None:
    """The result or the exception of a function, or None if it takes longer than `seconds`."""
    outcome: list[Result | Exception] = []

    def run() -> None:
        try:
            outcome.append(function())
        except Exception as error:
            outcome.append(error)

    # A daemon, so that a thread that hangs does not keep the process from ending.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return outcome[0] if outcome else None


def any_answers(addresses: Iterable[str]) -> bool:
    """Whether any of these web servers answers in time, even with an error; uses the environment's proxies.

    Without a network, downloads retry for minutes; this answers at once.
    """

    def ask(address: str) -> bool:
        try:
            urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=PROBE_SECONDS).close()
        except urllib.error.HTTPError:
            pass  # An answer.
        return True

    # A timeout of the request does not cover the look-up of the name.
    return any(within(PROBE_SECONDS, lambda address=address: ask(address)) is True for address in addresses)  # type: ignore[misc]
