"""What single changes of a pretraining recipe save: tokens and CPU seconds until the masked LM has learned so much.

    python tools/pilots.py tools/pilots.yaml --data prepared --output runs/pilots

Trains the recipe as the file has it and with one change at a time, every one with each seed, and writes table.md: how
much text and CPU time it took to come 0.5, 1 and 2 nats below the training text's unigram at [MASK]ed positions of the
held-out documents, medians and ranges over the seeds. What is finished is not done again, so the command goes on where
it was stopped, and more pilots or seeds may be added. The times are CPU seconds of training alone, without start-up,
validation and checkpoints: other work on the machine does not count, but it slows this down.
"""

import itertools
import os
import sys

import click

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from keras_bert import settings  # noqa: E402
from keras_bert.config.pretraining import PretrainConfig  # noqa: E402
from keras_bert.config.training import phase_ends  # noqa: E402
from tools.studies import is_finished, median_and_range, rows_of_markdown, run_command  # noqa: E402

GOALS = (0.5, 1.0, 2.0)  # Nats below the unigram.


def read(folder):
    """`(curve, last)` of a finished run: [(tokens, CPU seconds, nats below the unigram)], last validation's figures."""
    from keras_bert.training.metrics_log import read_metrics

    config = PretrainConfig.from_file(os.path.join(folder, "config.yaml"))
    ends = phase_ends(config.training.steps, [phase.share for phase in config.phases])
    curve, seconds, figures = [], 0.0, {}
    for line in read_metrics(os.path.join(folder, "metrics.jsonl")):
        seconds += line.get("cpu_seconds", 0.0)
        if "eval_mask_token_loss" in line:
            tokens = sum(
                (min(line["step"], end) - begin) * phase.batch_size * phase.sequence_length
                for begin, end, phase in zip([0, *ends], ends, config.phases)
                if line["step"] > begin
            )
            curve.append((tokens, seconds, line["eval_mask_token_unigram_loss"] - line["eval_mask_token_loss"]))
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
    """What several seeds gave; a dash where not all of them came so far."""
    return "–" if None in values else median_and_range(values, shown)


def table(folder, names, seeds):
    """Lines of Markdown."""
    header = ["pilot"]
    for goal in GOALS:
        header += [f"{goal:g} nats: million tokens", "CPU s"]
    rows = (_row(name, [read(os.path.join(folder, name, f"seed-{seed}")) for seed in seeds]) for name in names)
    return rows_of_markdown([*header, "CPU s in all", "nats below at the end", "perplexity"], rows)


def _row(name, runs):
    cells = [name.replace("_", " ")]
    for goal in GOALS:
        tokens, seconds = zip(*(crossing(curve, goal) or (None, None) for curve, _ in runs))
        cells.append(described(tokens, lambda value: f"{value / 1e6:.2f}"))
        cells.append(described(seconds, "{:.0f}".format))
    cells.append(described([curve[-1][1] for curve, _ in runs], "{:.0f}".format))
    cells.append(described([curve[-1][2] for curve, _ in runs], "{:.3f}".format))
    cells.append(described([figures["eval_perplexity"] for _, figures in runs], "{:.1f}".format))
    return cells


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
        click.echo(f"{name}, seed {seed}")
        if not is_finished(folder):
            given = ("--config", plan["recipe"], "--data", data, "--seed", str(seed))
            run_command(folder, {**plan["set"], **plan["pilots"][name]}, "pretrain", *given)
    lines = "\n".join(table(output, names, range(1, seeds + 1))) + "\n"
    with open(os.path.join(output, "table.md"), "w", encoding="utf-8") as stream:
        stream.write(lines)
    click.echo(lines)


if __name__ == "__main__":
    main()
