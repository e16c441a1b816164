"""What single changes of a pretraining recipe save: tokens and CPU seconds until the masked LM has learned so much.

    python tools/pilots.py tools/pilots.yaml --data prepared --output runs/pilots

Trains the recipe as the file has it and with one change at a time, every one with each seed, and writes table.md: how
much text and CPU time it took to come 0.5, 1 and 2 nats below the training text's unigram at [MASK]ed positions of the
held-out documents, medians and ranges over the seeds. What is finished is not done again, so the command goes on where
it was stopped, and more pilots or seeds may be added. The times are CPU seconds of training alone, without start-up,
validation and checkpoints: other work on the machine does not count, but it slows this down.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys

import click

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from keras_bert import settings  # noqa: E402
from keras_bert.config.pretraining import PretrainConfig  # noqa: E402
from keras_bert.config.training import phase_ends  # noqa: E402

GOALS = (0.5, 1.0, 2.0)  # Nats below the unigram.


def train(recipe, data, folder, seed, changes):
    """Runs `run.py pretrain` to its end in `folder`, where it is not there yet."""
    if os.path.exists(os.path.join(folder, "results.json")):
        return
    sets = itertools.chain.from_iterable(("--set", f"{key}={json.dumps(value)}") for key, value in changes.items())
    command = [
        sys.executable, os.path.join(ROOT, "run.py"), "pretrain", "--config", recipe, "--data", data,
        "--seed", str(seed), "--output", folder, *sets,
    ]  # fmt: skip
    with open(f"{folder}.log", "ab") as log:
        status = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT).returncode
    if status:
        raise click.ClickException(f"{folder}: ended with status {status}; see {folder}.log.")


def read(folder):
    """`(curve, last)` of a finished run: [(tokens, CPU seconds, nats below the unigram)], last validation's figures."""
    config = settings.from_mapping(PretrainConfig, settings.read_yaml(os.path.join(folder, "config.yaml")))
    ends = phase_ends(config.training.steps, [phase.share for phase in config.phases])
    curve, seconds, figures = [], 0.0, {}
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as stream:
        for line in map(json.loads, stream):
            seconds += line.get("cpu_seconds", 0.0)
            if "eval_mask_token_loss" in line:
                tokens = sum(
                    (min(line["step"], end) - begin) * phase.batch_size * phase.sequence_length
                    for begin, end, phase in zip([0, *ends], ends, config.phases)
                    if line["step"] > begin
                )
                below = line["eval_mask_token_unigram_loss"] - line["eval_mask_token_loss"]
                curve.append((tokens, seconds, below))
                figures = line
    return curve, figures


def crossing(curve, goal):
    """(tokens, CPU seconds) at which a curve first comes so far below, between two validations linearly; or None."""
    before = (0, 0.0, 0.0)
    for point in curve:
        if point[2] >= goal:
            part = (goal - before[2]) / (point[2] - before[2])
            return tuple(start + part * (end - start) for start, end in zip(before[:2], point[:2]))
        before = point
    return None


def described(values, shown):
    """Median and range of what several seeds gave; a dash where not all of them came so far."""
    if None in values:
        return "–"
    median = shown(statistics.median(values))
    return median if len(values) == 1 else f"{median} ({shown(min(values))}–{shown(max(values))})"


def table(folder, names, seeds):
    """Lines of Markdown."""
    headings = [f"{goal:g} nats: million tokens | CPU s" for goal in GOALS]
    headings += ["CPU s in all", "nats below at the end", "perplexity"]
    yield f"| pilot | {' | '.join(headings)} |"
    yield "|" + " --- |" * (len(headings) + len(GOALS) + 1)
    for name in names:
        runs = [read(os.path.join(folder, name, f"seed-{seed}")) for seed in seeds]
        cells = []
        for goal in GOALS:
            crossings = [crossing(curve, goal) or (None, None) for curve, _ in runs]
            tokens, seconds = zip(*crossings)
            cells.append(described(tokens, lambda value: f"{value / 1e6:.2f}"))
            cells.append(described(seconds, "{:.0f}".format))
        cells.append(described([curve[-1][1] for curve, _ in runs], "{:.0f}".format))
        cells.append(described([curve[-1][2] for curve, _ in runs], "{:.3f}".format))
        cells.append(described([figures["eval_perplexity"] for _, figures in runs], "{:.1f}".format))
        yield f"| {name.replace('_', ' ')} | {' | '.join(cells)} |"


@click.command()
@click.argument("pilots", metavar="FILE.yaml")
@click.option("--data", required=True, help="A folder that `prepare` wrote, or whatever `pretrain --data` takes.")
@click.option("--output", required=True, metavar="FOLDER", help="Of the runs and of table.md.")
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--only", multiple=True, metavar="NAME", help="Of the pilots in the file; repeatable. Default: all.")
def main(pilots, data, output, seeds, only):
    """Train a recipe with one change at a time and compare what it costs to learn so much."""
    plan = settings.read_yaml(pilots)
    names = list(only) or list(plan["pilots"])
    if unknown := set(names) - set(plan["pilots"]):
        raise click.UsageError(f"{', '.join(unknown)}: no such pilot in {pilots}.")
    for seed, name in itertools.product(range(1, seeds + 1), names):
        folder = os.path.join(output, name, f"seed-{seed}")
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        click.echo(f"{name}, seed {seed}")
        train(plan["recipe"], data, folder, seed, {**plan["set"], **plan["pilots"][name]})
    lines = "\n".join(table(output, names, range(1, seeds + 1))) + "\n"
    with open(os.path.join(output, "table.md"), "w", encoding="utf-8") as stream:
        stream.write(lines)
    click.echo(lines)


if __name__ == "__main__":
    main()
