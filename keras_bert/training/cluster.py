"""The worker processes of a run: from TF_CONFIG, which `launch` and Kubernetes set, or from a SLURM step."""

import contextlib
import errno
import json
import os
import re
import socket
import time
from collections.abc import Iterator, Sequence

import tensorflow as tf

from keras_bert.core.errors import UserError, WorkerLost
from keras_bert.core.program import PROGRAM, same_command
from keras_bert.core.yaml_and_json import parse_json
from keras_bert.training.stop_request import STOPPED_BY_SIGNAL

# Ports of the workers of a SLURM job: jobs on the same node get separate ranges, below the system's ephemeral ports.
_FIRST_PORT, _JOBS, _PORTS_PER_JOB = 10_000, 1_000, 16


def worker_addresses() -> list[str]:
    """The addresses of the workers in TF_CONFIG; empty if it is not set. Raises `UserError` if it is malformed."""
    text = os.environ.get("TF_CONFIG", "")
    if not text:
        return []
    try:
        config = parse_json(text)
        workers, task = config["cluster"]["worker"], config["task"]
        if task["type"] != "worker" or task["index"] not in range(len(workers)) or type(task["index"]) is not int:
            raise ValueError("task")
        if not isinstance(workers, list) or not all(isinstance(address, str) for address in workers):
            raise ValueError("worker")
    except (ValueError, KeyError, TypeError):
        raise UserError(
            'TF_CONFIG: needs {"cluster": {"worker": [addresses]}, "task": {"type": "worker", "index": whole number}}. '
            f"Received: {text[:200]}. `{PROGRAM} launch` sets it on one machine."
        ) from None
    return workers


def worker_index() -> int:
    """Which of `worker_addresses` this process is."""
    return json.loads(os.environ["TF_CONFIG"])["task"]["index"]


def workers_beside(addresses: Sequence[str], index: int) -> list[int]:
    """The numbers of the workers on the machine of worker `index`, including itself."""
    hosts = [address.rpartition(":")[0] for address in addresses]
    return [number for number, host in enumerate(hosts) if host == hosts[index]]


def join_slurm_step() -> None:
    """Sets TF_CONFIG if this process is one of several tasks that `srun` started, and divides a node's GPUs.

    Does nothing if TF_CONFIG is set or there is no such step.

    Raises:
        UserError: SLURM's variables contradict each other, or a node has fewer GPUs than tasks.
    """
    if os.environ.get("TF_CONFIG") or int(os.environ.get("SLURM_STEP_NUM_TASKS") or 1) < 2:
        return
    job = int(os.environ.get("SLURM_JOB_ID") or 0)
    try:
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            port_base=_FIRST_PORT + job % _JOBS * _PORTS_PER_JOB,
            # The resolver counts GPUs by nvidia-smi and stops where there are none; `_share_gpus` divides them.
            gpus_per_node=_PORTS_PER_JOB,
            gpus_per_task=1,
            auto_set_gpu=False,
        )
        addresses = resolver.cluster_spec().as_dict()["worker"]
    except (RuntimeError, ValueError, KeyError) as error:
        raise UserError(f"SLURM: needs the environment of a step that `srun` started. Received: {error}.") from None
    index = resolver.task_id
    task = {"type": "worker", "index": index}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": task})
    _share_gpus(addresses, index)


def share_gpus() -> None:
    """Gives this process its share of the machine's GPUs if TF_CONFIG has several workers on it, as `launch` does.

    Otherwise each of them would take all. Does nothing if CUDA_VISIBLE_DEVICES has chosen this process's GPUs.

    Raises:
        UserError: the machine has fewer GPUs than workers.
    """
    if "CUDA_VISIBLE_DEVICES" not in os.environ:
        _share_gpus(worker_addresses(), worker_index())


def _share_gpus(addresses: list[str], index: int) -> None:
    """Gives each task on a node its share of the node's GPUs, unless SLURM has bound them to tasks already."""
    on_node = workers_beside(addresses, index)
    gpus = tf.config.list_physical_devices("GPU")
    is_bound = any(os.environ.get(f"SLURM_{name}_PER_TASK") for name in ("GPUS", "TRES"))
    if len(on_node) == 1 or not gpus or is_bound:
        return
    if len(gpus) < len(on_node):
        host = addresses[index].rpartition(":")[0]
        raise UserError(
            f"{host}: needs a GPU for each of its {len(on_node)} workers. Received: {len(gpus)}. Start at most "
            "that many workers there, or set CUDA_VISIBLE_DEVICES=-1 to train on CPUs."
        )
    tf.config.set_visible_devices(gpus[on_node.index(index) :: len(on_node)], "GPU")


_PAUSE = 0.2  # Seconds between two attempts.
_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[^\[\]]+)\]|(?P<host>[^:\[\]]+)):(?P<port>[0-9]+)")


def wait_for_workers(addresses: Sequence[str], index: int, seconds: float) -> None:
    """Returns once every other worker answers at its address; listens at this worker's own address meanwhile.

    TensorFlow's own wait for a missing worker cannot be interrupted. A worker that has seen all the others closes its
    port here, but TensorFlow opens it again at once, so workers that look later find it too.

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
    if found:
        host = found["ipv6"] or found["host"]
        with contextlib.suppress(UnicodeError):  # A part of the name is empty or too long, as in worker-0..svc:2222.
            host.encode("idna")
            return host, int(found["port"])
    raise UserError(
        f"TF_CONFIG: needs addresses of the form host:port, or [host]:port for IPv6. Received: {address!r}."
    )


# A collective op, such as the sum of the gradients, ends with one of these when a peer is killed or unreachable.
_ERRORS = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError)
_SIGN = "Collective ops is aborted by: "


@contextlib.contextmanager
def explained_lost_worker() -> Iterator[None]:
    """Turns the error of a collective op whose peer is gone into a `WorkerLost`, which asks for a restart.

    It surrounds a whole run: a peer may be gone at any collective from the start-up to the results.
    """
    try:
        yield
    except _ERRORS as error:
        if len(worker_addresses()) < 2 or _SIGN not in error.message:
            raise
        reason = error.message.split(_SIGN, 1)[1].strip().splitlines()[0]
        raise WorkerLost(
            f"Another worker of this run is gone ({reason}). Start all workers again with {same_command()}; they "
            "resume from the newest checkpoint.",
            STOPPED_BY_SIGNAL,
        ) from None
