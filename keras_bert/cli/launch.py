"""`run.py launch`."""

import itertools
import json
import logging
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from types import FrameType

import click

from keras_bert.core.errors import UserError
from keras_bert.core.program import called_program
from keras_bert.training.stop_request import REQUESTS, STOPPED_BY_SIGNAL

GRACE_SECONDS = 20.0  # How long the other workers may take to stop after one has failed.
BAD_INPUT = 2  # The exit status after an error that a restart would only repeat.
_PAUSE = 0.1  # Seconds between polls of the workers.
_log = logging.getLogger(__name__)


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--workers", type=click.IntRange(min=1), required=True, help="Number of processes to start.")
@click.option(
    "--restart",
    type=click.IntRange(min=0),
    default=0,
    help="After a failure, start all workers again up to this many times. Bad input is not retried.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND…")
@click.pass_context
def launch(context: click.Context, workers: int, restart: int, command: tuple[str, ...]) -> None:
    """Start several workers of one run on this machine, and stop all of them if one fails.

    SIGTERM, SIGHUP and Ctrl-C are forwarded to the workers, which save a checkpoint and stop; this command then exits
    with status 75. A second SIGTERM or Ctrl-C, at least one second later, stops them at once.

    Each worker gets its own TF_CONFIG and a share of the GPUs: those in CUDA_VISIBLE_DEVICES, or else all. On several
    machines, set TF_CONFIG and start the command itself on each.

    \b
    Example:
      python run.py launch --workers 2 -- pretrain --config wiki_mini --data 'wiki/*'
    """
    if restart and "--fresh" in command:
        raise UserError(
            "--restart: needs a command that resumes. Received: --fresh, which would start over at every restart. Give "
            "a new --output instead of --fresh."
        )
    gpus = _visible_gpus()
    if gpus and len(gpus) < workers:
        raise UserError(
            f"--workers: needs a GPU in CUDA_VISIBLE_DEVICES for each worker. Received: {workers} workers and "
            f"{len(gpus)}. Start at most that many, or set CUDA_VISIBLE_DEVICES=-1 to train on CPUs."
        )
    requests: list[int] = []
    groups: list[Workers] = []

    def stop(number: int, frame: FrameType | None) -> None:
        requests.append(number)
        for group in groups[-1:]:
            group.stop(number)

    for number in REQUESTS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)
    for left in range(restart, -1, -1):
        groups.append(group := Workers(_started(workers, command)))
        if requests:  # While they were started.
            group.stop(requests[-1])
        failed = group.wait()
        status = group.statuses[failed] if failed is not None else max(group.statuses)
        if failed is not None:
            _log.warning(f"Worker {failed} exited with status {status}; all workers are stopped.")
        if requests or status in (0, BAD_INPUT) or not left:
            break
        _log.warning(f"Starting all workers again; {left} of {restart} restarts are left.")
    context.exit(status if status >= 0 else 128 - status)  # The shell's convention for a process killed by a signal.


def _started(workers: int, command: Sequence[str]) -> list[subprocess.Popen]:
    addresses = [f"127.0.0.1:{port}" for port in free_ports(workers)]
    return [
        # A session of its own: a signal from the terminal reaches only this process, which forwards it once.
        subprocess.Popen(
            [*called_program(), *command], env=worker_environment(addresses, index), start_new_session=True
        )
        for index in range(workers)
    ]


class Workers:
    """The worker processes of one run, stopped together and waited for together.

    Args:
        processes: the `subprocess.Popen` of each worker.
        grace_seconds: how long the remaining workers may take to stop after one has failed.

    Attributes:
        are_asked: whether they were asked to stop.
    """

    def __init__(self, processes: list[subprocess.Popen], grace_seconds: float = GRACE_SECONDS):
        self._processes = processes
        self._grace_seconds = grace_seconds
        self.are_asked = False

    def stop(self, number: int) -> None:
        """Forwards a signal: the first asks the workers to save and stop, a later one to exit at once."""
        self.are_asked = True
        self._signal(number)

    def wait(self) -> int | None:
        """Waits for all workers to exit. Returns the index of the first to fail, or None.

        Exiting on request, with `STOPPED_BY_SIGNAL`, is not a failure: the others are left to finish saving. After a
        failure the others are asked to stop, unless they already were, and killed after `grace_seconds`.
        """
        failed = None
        while running := self._running():
            if failed is None:
                failed = self._first_failure()
                if failed is not None:
                    if not self.are_asked:
                        self._signal(signal.SIGTERM)
                    deadline = time.monotonic() + self._grace_seconds
            elif time.monotonic() > deadline:
                for process in running:
                    process.kill()
            time.sleep(_PAUSE)
        return self._first_failure() if failed is None else failed

    @property
    def statuses(self) -> list[int]:
        """The exit status of each worker, negative for one killed by a signal."""
        return [process.returncode for process in self._processes]

    def _signal(self, number: int) -> None:
        for process in self._running():
            process.send_signal(number)

    def _running(self) -> list[subprocess.Popen]:
        return [process for process in self._processes if process.poll() is None]

    def _first_failure(self) -> int | None:
        # If several are found at once, a worker that failed by itself comes before one killed by a signal (< 0).
        failures = [
            index
            for index, process in enumerate(self._processes)
            if process.returncode not in (None, 0, STOPPED_BY_SIGNAL)
        ]
        return max(failures, key=lambda index: self._processes[index].returncode, default=None)


def free_ports(count: int) -> list[int]:
    """Returns `count` free ports of this machine."""
    sockets = [socket.socket() for _ in range(count)]
    for opened in sockets:
        opened.bind(("127.0.0.1", 0))
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


def worker_environment(addresses: list[str], index: int) -> dict[str, str]:
    """Returns a worker's environment, with TF_CONFIG and its share of the GPUs visible to this process."""
    task = {"type": "worker", "index": index}
    environment = {**os.environ, "TF_CONFIG": json.dumps({"cluster": {"worker": addresses}, "task": task})}
    gpus = _visible_gpus()
    if gpus:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus[index :: len(addresses)])
    return environment


def _visible_gpus() -> list[str]:
    """The GPUs in CUDA_VISIBLE_DEVICES; none if it is not set, and each worker then takes its share by itself."""
    names = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    return list(itertools.takewhile(lambda name: name not in ("", "-1"), names))  # CUDA ignores what follows a -1.
