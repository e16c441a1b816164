"""What models are worth: each fine-tuned the same way on several tasks, in one table and one picture.

    python tools/worth.py --data data --output runs/worth scratch=scratch:runs/five_minutes ours=runs/five_minutes

A model is any that `finetune --init` takes; `scratch:MODEL` is its architecture and vocabulary with random weights.
Every task of the plan (tools/worth.yaml) is trained with each of its rates and every seed, and the rate with the better
median counts, for each model separately. Writes worth.md and worth.png: the task's main metric on its dev examples,
medians and ranges over the seeds. The same command resumes; models, tasks and seeds may be added.
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

SCRATCH = "scratch:"


def finetune(task, plan, data, init, rate, seeds, folder):
    """Results of one model on one task at one rate, over all seeds; trains where they are not there yet."""
    if not os.path.exists(os.path.join(folder, "results.json")) or _read(folder)["seeds"] != seeds:
        changes = {**plan.get("set", {}), "optimizer.learning_rate": rate, "training.keep_checkpoints": 1}
        command = [
            sys.executable, os.path.join(ROOT, "run.py"), "finetune", "--task", task, "--output", folder,
            "--init", init.removeprefix(SCRATCH), *(["--from-scratch"] if init.startswith(SCRATCH) else []),
            "--data-dir", os.path.join(data, plan["folder"]), "--seeds", ",".join(map(str, seeds)),
            *itertools.chain.from_iterable(("--set", f"{key}={json.dumps(value)}") for key, value in changes.items()),
        ]  # fmt: skip
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        with open(f"{folder}.log", "ab") as log:
            status = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT).returncode
        if status:
            raise click.ClickException(f"{folder}: ended with status {status}; see {folder}.log.")
    return _read(folder)


def _read(folder):
    with open(os.path.join(folder, "results.json"), encoding="utf-8") as stream:
        return json.load(stream)


def main_scores(results):
    """The main metric on the main split, of every seed, in per cent."""
    split = next(iter(results["splits"]))
    scale = 1.0 if results["per_cent"] else 100.0
    return [scale * value for value in results["over_seeds"][split][results["main_metric"]]["values"]]


def majority(results):
    """What the most frequent answer scores there, in per cent; None where that is no number."""
    split = next(iter(results["splits"]))
    value = results["baseline"][split].get(results["main_metric"])
    return None if not isinstance(value, (int, float)) else (1.0 if results["per_cent"] else 100.0) * value


def better(found):
    """(rate, results) of the rate with the best median, of `{rate: results}`."""
    return max(found.items(), key=lambda item: _median(item[1]))


def _median(results):
    return results["splits"][next(iter(results["splits"]))][results["main_metric"]]


def table(found, models):
    """Lines of Markdown. `found` is `{task: {model: (rate, results)}}`."""
    yield "| task | metric | most frequent answer | " + " | ".join(models) + " |"
    yield "|" + " --- |" * (3 + len(models))
    for task, by_model in found.items():
        first = next(iter(by_model.values()))[1]
        base = majority(first)
        cells = [_cell(*by_model[model]) for model in models]
        baseline = "–" if base is None else f"{base:.1f}"
        yield f"| {task} | {first['main_metric']} | {baseline} | {' | '.join(cells)} |"


def _cell(rate, results):
    scores = main_scores(results)
    spread = "" if len(scores) == 1 else f" ({min(scores):.1f}–{max(scores):.1f})"
    return f"{statistics.median(scores):.1f}{spread} at {rate:g}"


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="NAME=MODEL…")
@click.option("--plan", default=os.path.join(ROOT, "tools", "worth.yaml"), metavar="FILE.yaml", help="Of the tasks.")
@click.option("--data", required=True, metavar="FOLDER", help="Which the plan's folders are in.")
@click.option("--output", required=True, metavar="FOLDER", help="Of the runs, worth.md and worth.png.")
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--only", multiple=True, metavar="TASK", help="Of the plan; repeatable. Default: all.")
@click.option("--title", default="", help="Of the picture.")
def main(models, plan, data, output, seeds, only, title):
    """Fine-tune models on tasks and compare what they are worth."""
    from keras_bert.tasks.pictures import scores_picture

    inits = dict(text.partition("=")[::2] for text in models)
    if not all(inits.values()):
        raise click.UsageError("Each model needs the form NAME=MODEL.")
    plans = settings.read_yaml(plan)
    if unknown := set(only) - set(plans):
        raise click.UsageError(f"{', '.join(unknown)}: no such task in {plan}.")
    found, numbers = {}, list(range(1, seeds + 1))
    for task in only or plans:
        found[task] = {}
        for name, init in inits.items():
            click.echo(f"{task}: {name}")
            rates = plans[task]["rates"]
            folders = {rate: os.path.join(output, task, name, f"rate-{rate:g}") for rate in rates}
            results = {rate: finetune(task, plans[task], data, init, rate, numbers, folders[rate]) for rate in rates}
            found[task][name] = better(results)
    lines = "\n".join(table(found, list(inits))) + "\n"
    with open(os.path.join(output, "worth.md"), "w", encoding="utf-8") as stream:
        stream.write(lines)
    scores = {
        f"{task}\n{next(iter(by_model.values()))[1]['main_metric']}": {
            "most frequent": [majority(next(iter(by_model.values()))[1])],
            **{name: main_scores(results) for name, (_, results) in by_model.items()},
        }
        for task, by_model in found.items()
    }
    with open(os.path.join(output, "worth.png"), "wb") as stream:
        stream.write(scores_picture(scores, title))
    click.echo(lines)


if __name__ == "__main__":
    main()
