"""Finding out whether all processes of a run are there, before TensorFlow waits for them without end."""

import contextlib
import socket
import time

from keras_bert.errors import UserError

_PAUSE = 0.2  # Seconds between two looks.


def wait_for_workers(addresses, index, seconds):
    """Returns once every other worker's address answers; this one's answers meanwhile.

    TensorFlow's own wait for a missing worker cannot be interrupted. One that has seen all the others closes its port
    here, and TensorFlow opens it again at once, so those that look later find it too.

    Args:
        addresses: `host:port` of every worker, as TF_CONFIG names them.
        index: this process's among them.
        seconds: how long to look.

    Raises:
        UserError: names the workers that did not answer, or this one's port if it is taken.
    """
    deadline = time.monotonic() + seconds
    missing = [address for number, address in enumerate(addresses) if number != index]
    with _listening(addresses[index]):
        while missing := [address for address in missing if not _answers(address)]:
            if time.monotonic() > deadline:
                raise UserError(
                    f"training.strategy multiworker: of the {len(addresses)} processes that TF_CONFIG names "
                    f"{', '.join(missing)} did not answer within {seconds} seconds. Start them all with the same "
                    "command, each with its own task index."
                )
            time.sleep(_PAUSE)


@contextlib.contextmanager
def _listening(address):
    try:
        server = socket.create_server(("", _host_and_port(address)[1]), backlog=128)
    except (OSError, OverflowError) as error:
        raise UserError(
            f"training.strategy multiworker: this process's address in TF_CONFIG, {address}, cannot be listened at "
            f"({error}). Free the port, or name another in the TF_CONFIG of every process."
        ) from None
    with server:
        yield


def _answers(address):
    try:
        socket.create_connection(_host_and_port(address), timeout=5).close()
    except OSError:
        return False
    return True


def _host_and_port(address):
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UserError(f"TF_CONFIG: needs addresses of the form host:port. Received: {address!r}.")
    return host, int(port)
