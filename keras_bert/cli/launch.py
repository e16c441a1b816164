"""`run.py launch`."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import click

from keras_bert.training.stop_request import REQUESTS, STOPPED_BY_SIGNAL

GRACE_SECONDS = 20.0  # How long the others may take to stop once a worker has failed.
_PAUSE = 0.1  # Seconds between two looks at the workers.


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--workers", type=click.IntRange(min=1), required=True, help="Number of processes to start.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND…")
@click.pass_context
def launch(context, workers, command):
    """Start several workers of one run on this machine, and stop all of them if one fails.

    SIGTERM, SIGHUP and Ctrl-C are passed on once: the workers save a checkpoint and stop, and so does this command, with
    status 75. Another signal, a second later or more, ends them at once.

    Each worker gets its TF_CONFIG and a share of the GPUs in CUDA_VISIBLE_DEVICES. On several machines, set TF_CONFIG
    and start the command itself on each.

    \b
    Example:
      python run.py launch --workers 2 -- pretrain --config wiki_mini --data 'wiki/*'
    """
    addresses = [f"127.0.0.1:{port}" for port in free_ports(workers)]
    started = [
        # A session of its own: what the terminal sends to its group comes here alone, and is passed on once.
        subprocess.Popen(
            [sys.executable, os.path.abspath(sys.argv[0]), *command],
            env=worker_environment(addresses, index),
            start_new_session=True,
        )
        for index in range(workers)
    ]
    group = Workers(started)
    for number in REQUESTS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, frame: group.stop(number))
    failed = group.wait()
    if failed is not None:
        status = started[failed].returncode
        click.echo(f"Worker {failed} ended with status {status}; all are stopped.", err=True)
        context.exit(status if status > 0 else 128 - status)  # As a shell says that a signal ended it.
    context.exit(STOPPED_BY_SIGNAL if any(process.returncode for process in started) else 0)


class Workers:
    """The processes of one run, asked to stop together and waited for together.

    Args:
        processes: `subprocess.Popen` of each.
        grace_seconds: how long those that are left may take to stop once one has failed.
    """

    def __init__(self, processes: list[subprocess.Popen], grace_seconds: float = GRACE_SECONDS):
        self._processes = processes
        self._grace_seconds = grace_seconds
        self._are_asked = False

    def stop(self, number: int) -> None:
        """Passes a signal on: a first one asks to save and stop, a later one to leave at once."""
        self._are_asked = True
        for process in self._running():
            process.send_signal(number)

    def wait(self) -> int | None:
        """When all have ended, the index of the one that failed first, if any.

        To stop on request, with `STOPPED_BY_SIGNAL`, is no failure: the others are left to end their saving. After a
        failure they are asked to stop, unless they have been, and killed when the grace is over.
        """
        failed = None
        while running := self._running():
            if failed is None:
                failed = self._first_failure()
                if failed is not None:
                    if not self._are_asked:
                        self.stop(signal.SIGTERM)
                    deadline = time.monotonic() + self._grace_seconds
            elif time.monotonic() > deadline:
                for process in running:
                    process.kill()
            time.sleep(_PAUSE)
        return self._first_failure() if failed is None else failed

    def _running(self):
        return [process for process in self._processes if process.poll() is None]

    def _first_failure(self):
        # One that failed of itself comes before one that a signal ended (< 0), should both be seen at once.
        failures = [
            index
            for index, process in enumerate(self._processes)
            if process.returncode not in (None, 0, STOPPED_BY_SIGNAL)
        ]
        return max(failures, key=lambda index: self._processes[index].returncode, default=None)


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nothing listens at."""
    sockets = [socket.socket() for _ in range(count)]
    for opened in sockets:
        opened.bind(("127.0.0.1", 0))
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


def worker_environment(addresses: list[str], index: int) -> dict[str, str]:
    """The environment of a worker: TF_CONFIG, and its share of the GPUs that are visible here."""
    task = {"type": "worker", "index": index}
    environment = {**os.environ, "TF_CONFIG": json.dumps({"cluster": {"worker": addresses}, "task": task})}
    gpus = [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]
    if gpus:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus[index :: len(addresses)])
    return environment
