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


def any_answers(addresses: Iterable[str], seconds: float = PROBE_SECONDS) -> bool:
    """Whether any of these web servers answers, even with an error; uses the proxies of the environment.

    Without a network, downloads retry for minutes; this tells at once.
    """

    def ask(address: str) -> bool:
        try:
            urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=seconds).close()
        except urllib.error.HTTPError:
            pass  # An answer.
        return True

    # A timeout of the request does not cover the look-up of the name.
    return any(within(seconds, lambda address=address: ask(address)) is True for address in addresses)  # type: ignore[misc]
