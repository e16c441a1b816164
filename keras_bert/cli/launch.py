"""`run.py launch`."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import click

GRACE_SECONDS = 20  # How long workers that are asked to stop may take to save.


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--workers", type=click.IntRange(min=1), required=True, help="Number of processes to start.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND…")
@click.pass_context
def launch(context, workers, command):
    """Start several workers of one run on this machine, and stop all of them if one fails.

    Each worker gets its TF_CONFIG and a share of the GPUs in CUDA_VISIBLE_DEVICES. On several machines, set TF_CONFIG
    and start the command itself on each.

    \b
    Example:
      python run.py launch --workers 2 -- pretrain --config wiki_mini --data 'wiki/*'
    """
    addresses = [f"127.0.0.1:{port}" for port in _free_ports(workers)]
    processes = [
        subprocess.Popen([sys.executable, os.path.abspath(sys.argv[0]), *command], env=_environment(addresses, index))
        for index in range(workers)
    ]

    def pass_on(number, frame):
        for process in processes:
            process.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    failed = first_to_fail(processes)
    if failed is None:
        context.exit(0)
    status = processes[failed].returncode
    click.echo(f"Worker {failed} ended with status {status}; all are stopped.", err=True)
    context.exit(status if status > 0 else 128 - status)  # As a shell says that a signal ended it.


def first_to_fail(processes):
    """When all have ended, the index of the one that failed first, if any; it has the others stopped."""
    failed = None
    while True:
        running = [process for process in processes if process.poll() is None]
        if failed is None:
            # One that failed of itself comes before one that a signal ended (< 0), should both be seen at once.
            failures = [index for index, process in enumerate(processes) if process.returncode]
            failed = max(failures, key=lambda index: processes[index].returncode, default=None)
            if failed is not None:
                patience = time.monotonic() + GRACE_SECONDS
                for process in running:
                    process.terminate()
        elif time.monotonic() > patience:
            for process in running:
                process.kill()
        if not running:
            return failed
        time.sleep(0.1)


def _free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for opened in sockets:
        opened.bind(("127.0.0.1", 0))
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


def _environment(addresses, index):
    task = {"type": "worker", "index": index}
    environment = {**os.environ, "TF_CONFIG": json.dumps({"cluster": {"worker": addresses}, "task": task})}
    gpus = [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]
    if gpus:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus[index :: len(addresses)])
    return environment
