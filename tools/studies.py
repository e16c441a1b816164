"""What the tools that train many runs share: one run by the command line, and figures over seeds."""

import json
import os
import statistics
import subprocess
import sys

import click

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run_command(folder, changes, command, *arguments):
    """Runs a command of run.py into a run folder, its output appended to FOLDER.log; raises if it fails.

    Args:
        folder: for `--output`.
        changes: `{setting: value}` for `--set`.
        command, arguments: the command, and what else it takes.
    """
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    line = [sys.executable, os.path.join(ROOT, "run.py"), command, *arguments, "--output", folder]
    for key, value in changes.items():
        line += ["--set", f"{key}={json.dumps(value)}"]
    with open(f"{folder}.log", "ab") as log:
        status = subprocess.run(line, stdout=log, stderr=subprocess.STDOUT).returncode
    if status:
        raise click.ClickException(f"{folder}: ended with status {status}; see {folder}.log.")


def is_finished(folder):
    """Whether a run wrote its results."""
    return os.path.exists(os.path.join(folder, "results.json"))


def median_and_range(values, shown):
    """`median (least–greatest)`, each by the function `shown`; the one value where there is no range."""
    median = shown(statistics.median(values))
    return median if len(values) == 1 else f"{median} ({shown(min(values))}–{shown(max(values))})"


def rows_of_markdown(header, rows):
    """Lines of a table of strings."""
    yield f"| {' | '.join(header)} |"
    yield "|" + " --- |" * len(header)
    yield from (f"| {' | '.join(row)} |" for row in rows)
