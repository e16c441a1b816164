"""Whether two run folders hold the same numbers, bit for bit.

    python tools/compare_runs.py runs/one runs/other

It compares every line of metrics.jsonl and results.json except the times, the weights of model/, and the last
checkpoint. The exit status is 1 on any difference.
"""

import json
import os
import re
import sys

import click
import numpy as np
import safetensors.numpy

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from keras_bert.core.runtime import import_tensorflow  # noqa: E402

OF_TIME = re.compile(r"per_second|_wait_|seconds|minutes|utili[sz]ation|goodput")


def compare(one, other):
    """[(what, how many were compared, names of those that differ)] of two finished run folders."""
    rows = []
    for what, read in {
        "lines of metrics.jsonl": _lines,
        "tensors of model.safetensors": _weights,
        "variables of the last checkpoint": _last_checkpoint,
        "figures of results.json": _results,
    }.items():
        ours, theirs = read(one), read(other)
        names, both = sorted({*ours, *theirs}), ours.keys() & theirs.keys()
        different = [name for name in names if name not in both or not _is_same(ours[name], theirs[name])]
        rows.append((what, len(names), different))
    return rows


def show(rows):
    click.echo(f"{'compared':36}{'number':>7}{'differ':>8}")
    for what, number, different in rows:
        click.echo(f"  {what:34}{number:7}{len(different):8}  {', '.join(different[:5])}".rstrip())


def _lines(run):
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as stream:
        return {f"line {number}": _without_time(json.loads(line)) for number, line in enumerate(stream, 1)}


def _results(run):
    with open(os.path.join(run, "results.json"), encoding="utf-8") as stream:
        return _without_time(json.load(stream))


def _weights(run):
    return safetensors.numpy.load_file(os.path.join(run, "model", "model.safetensors"))


def _last_checkpoint(run):
    import_tensorflow()
    import tensorflow as tf

    folder = os.path.join(run, "checkpoints")
    last = max(name for name in os.listdir(folder) if name.startswith("step-"))
    reader = tf.train.load_checkpoint(os.path.join(folder, last, "checkpoint"))
    variables = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    return {name: value for name, value in variables.items() if isinstance(value, np.ndarray)}


def _without_time(figures):
    return {name: value for name, value in figures.items() if not OF_TIME.search(name)}


def _is_same(one, other):
    if isinstance(one, np.ndarray):
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    return one == other or repr(one) == repr(other)  # Two NaN are the same figure.


@click.command()
@click.argument("one")
@click.argument("other")
def main(one, other):
    for run in (one, other):
        for name in ("metrics.jsonl", "results.json"):
            if not os.path.exists(os.path.join(run, name)):
                raise click.UsageError(f"{run}: needs the folder of one finished run. Received: one without {name}.")
    rows = compare(one, other)
    show(rows)
    sys.exit(any(different for _, _, different in rows))


if __name__ == "__main__":
    main()
