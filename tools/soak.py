"""A pretraining run of hours, killed every few minutes: its memory must stay flat, its numbers those of one left alone.

    python tools/soak.py --steps 60000 --every 10 --data 'wiki/*' --output runs/soak [--config five_minutes] [--alone]

Trains with `run.py pretrain` and ends the process with SIGKILL every `--every` minutes, until it has finished by
itself. The process's memory is read every five seconds. For each start it prints the steps, the memory after the first
of them and at the end, and its slope in MB per hour (least squares, without the first minute of training); then the
slope over the whole run, which would show a start that needs more than the one before. --alone trains the same steps
once more in OUTPUT-alone without a kill, and compares the two as tools/compare_runs.py does: the exit status is 1 on
any difference.
"""

import os
import subprocess
import sys
import time

import click
import psutil

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from keras_bert.training.metrics_log import read_metrics  # noqa: E402
from tools.compare_runs import compare, show  # noqa: E402
from tools.own_memory import SECONDS_AN_HOUR, own_memory, slope  # noqa: E402

SECONDS_BETWEEN_LOOKS = 5.0
SECONDS_TO_SETTLE = 60.0


def last_step(folder):
    """The last step in metrics.jsonl; 0 before the first."""
    lines = read_metrics(os.path.join(folder, "metrics.jsonl"))
    return lines[-1]["step"] if lines else 0


def live(command, folder, seconds, log):
    """Runs `command` for `seconds`, or to its end.

    Returns: (whether it ended by itself, [(time, MB)] from its first new line of figures on). Raises if it failed.
    """
    begun_with, samples, until = last_step(folder), [], time.monotonic() + seconds
    with open(log, "ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT)
    while process.poll() is None and time.monotonic() < until:
        time.sleep(SECONDS_BETWEEN_LOOKS)
        try:
            memory = own_memory(process.pid)
        except psutil.NoSuchProcess:
            break
        if memory and last_step(folder) > begun_with:
            samples.append((time.monotonic(), memory))
    is_over = process.poll() is not None
    if not is_over:
        process.kill()
        process.wait()
    elif process.returncode:
        raise click.ClickException(f"The run ended with status {process.returncode}; its output is in {log}.")
    return is_over, samples


def settled(samples):
    return [(at, memory) for at, memory in samples if at >= samples[0][0] + SECONDS_TO_SETTLE]


@click.command()
@click.option("--config", default="five_minutes", show_default=True, help="As for pretrain.")
@click.option("--data", required=True, metavar="GLOB", help="Text or prepared shards, as for pretrain.")
@click.option("--steps", required=True, type=click.IntRange(min=1))
@click.option("--every", default=10.0, show_default=True, metavar="MINUTES", help="Between two kills.")
@click.option("--output", required=True, metavar="FOLDER")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="As for pretrain. Repeatable.")
@click.option("--alone", is_flag=True, help="Train once more without a kill, and compare.")
def main(config, data, steps, every, output, settings, alone):
    output = os.path.abspath(output)
    if os.path.exists(output) and os.listdir(output):
        raise click.UsageError(f"{output}: needs to be new or empty.")

    def command(folder):
        shared = ["--config", config, "--data", data, "--steps", str(steps), "--output", folder]
        chosen = [part for setting in settings for part in ("--set", setting)]
        return [sys.executable, os.path.join(ROOT, "run.py"), "pretrain", *shared, *chosen]

    whole, starts, is_over = [], 0, False
    while not is_over:
        before, starts = last_step(output), starts + 1
        is_over, samples = live(command(output), output, 60 * every, f"{output}.log")
        whole += settled(samples) if samples else []
        memory = f"{samples[0][1]:,.0f} to {samples[-1][1]:,.0f} MB" if samples else "no step done"
        slope_here = slope(settled(samples)) if samples else float("nan")
        click.echo(
            f"start {starts}: step {before:,} to {last_step(output):,}, {memory}, {slope_here:+.1f} MB an hour, "
            f"{'finished' if is_over else 'killed'}"
        )
    hours = (whole[-1][0] - whole[0][0]) / SECONDS_AN_HOUR if whole else 0.0
    click.echo(f"{starts - 1} kills in {hours:.2f} hours, {slope(whole):+.1f} MB an hour over all of them")
    if alone:
        live(command(f"{output}-alone"), f"{output}-alone", float("inf"), f"{output}-alone.log")
        rows = compare(output, f"{output}-alone")
        show(rows)
        sys.exit(any(different for _, _, different in rows))


if __name__ == "__main__":
    main()
