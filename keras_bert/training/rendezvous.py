"""Waits for all processes of a run with a time limit, before TensorFlow waits for them forever."""

import contextlib
import errno
import re
import socket
import time
from collections.abc import Iterator, Sequence

from keras_bert.errors import UserError

_PAUSE = 0.2  # Seconds between two attempts.
_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[^\[\]]+)\]|(?P<host>[^:\[\]]+)):(?P<port>[0-9]+)")


def wait_for_workers(addresses: Sequence[str], index: int, seconds: float) -> None:
    """Returns once every other worker answers at its address; listens at this worker's own address meanwhile.

    TensorFlow's own wait for a missing worker cannot be interrupted. A worker that has seen all the others closes its
    port here, and TensorFlow opens it again at once, so workers that look later find it too.

    Args:
        addresses: `host:port` of every worker, as in TF_CONFIG; `[host]:port` for IPv6.
        index: which of them is this process.
        seconds: how long to wait.

    Raises:
        UserError: names the workers that did not answer, or this worker's port if it is taken.
    """
    deadline = time.monotonic() + seconds
    missing = [address for number, address in enumerate(addresses) if number != index]
    with _listening(addresses[index]):
        while missing := [address for address in missing if not _answers(address)]:
            if time.monotonic() > deadline:
                raise UserError(
                    f"training.strategy multiworker: of the {len(addresses)} processes in TF_CONFIG, "
                    f"{', '.join(missing)} did not answer within {seconds} seconds. Start them all with the same "
                    "command, each with its own task index."
                )
            time.sleep(_PAUSE)


@contextlib.contextmanager
def _listening(address: str) -> Iterator[None]:
    try:
        server = _server(_host_and_port(address)[1])
    except (OSError, OverflowError) as error:
        raise UserError(
            f"training.strategy multiworker: cannot listen at {address}, this process's address in TF_CONFIG "
            f"({error}). Free the port, or set another one in the TF_CONFIG of every process."
        ) from None
    with server:
        yield


def _server(port: int) -> socket.socket:
    """Listens at a port for IPv6 and IPv4, because the others may use either; for IPv4 alone if there is no IPv6."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, backlog=128, dualstack_ipv6=True)
        except OSError as error:
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):  # IPv6 is supported but turned off.
                raise
    return socket.create_server(("", port), backlog=128)


def _answers(address: str) -> bool:
    try:
        socket.create_connection(_host_and_port(address), timeout=5).close()
    except OSError:
        return False
    return True


def _host_and_port(address: str) -> tuple[str, int]:
    """(host, port) of `host:port`, or of `[host]:port` for IPv6. Raises `UserError` for anything else."""
    found = _ADDRESS.fullmatch(address)
    if not found:
        raise UserError(
            f"TF_CONFIG: needs addresses of the form host:port, or [host]:port for IPv6. Received: {address!r}."
        )
    return found["ipv6"] or found["host"], int(found["port"])
