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
import sys

import click

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from keras_bert import settings  # noqa: E402
from tools.studies import is_finished, median_and_range, rows_of_markdown, run_command  # noqa: E402

SCRATCH = "scratch:"


def finetune(task, plan, data, init, rate, seeds, folder):
    """Results of one model on one task at one rate, over all seeds; trains where they are not there yet."""
    if not is_finished(folder) or _read(folder)["seeds"] != seeds:
        changes = {**plan.get("set", {}), "optimizer.learning_rate": rate, "training.keep_checkpoints": 1}
        options = {
            "--task": plan.get("task", task),
            "--init": init.removeprefix(SCRATCH),
            "--data-dir": os.path.join(data, plan["folder"]),
            "--seeds": ",".join(map(str, seeds)),
        }
        scratch = ["--from-scratch"] if init.startswith(SCRATCH) else []
        run_command(folder, changes, "finetune", *itertools.chain.from_iterable(options.items()), *scratch)
    return _read(folder)


def _read(folder):
    with open(os.path.join(folder, "results.json"), encoding="utf-8") as stream:
        return json.load(stream)


def main_scores(results):
    """The main metric on the main split, of every seed, in per cent."""
    return [_scale(results) * value for value in results["over_seeds"][_split(results)][_metric(results)]["values"]]


def majority(results):
    """What the most frequent answer scores there, in per cent; None where that is no number."""
    value = results["baseline"][_split(results)].get(_metric(results))
    return _scale(results) * value if isinstance(value, (int, float)) else None


def better(found):
    """(rate, results) of the rate with the best median, of `{rate: results}`."""
    return max(found.items(), key=lambda item: item[1]["splits"][_split(item[1])][_metric(item[1])])


def _split(results):
    return next(iter(results["splits"]))


def _metric(results):
    return results["main_metric"]


def _scale(results):
    return 1.0 if results["per_cent"] else 100.0


def table(found, models):
    """Lines of Markdown. `found` is `{task: {model: (rate, results)}}`."""
    rows = (_row(task, [by_model[model] for model in models]) for task, by_model in found.items())
    return rows_of_markdown(["task", "metric", "most frequent answer", *models], rows)


def _row(task, found):
    (_, first), *_ = found
    base = majority(first)
    scores = (f"{median_and_range(main_scores(results), '{:.1f}'.format)} at {rate:g}" for rate, results in found)
    return [task, _metric(first), "–" if base is None else f"{base:.1f}", *scores]


def drawn(found):
    """`found` as `scores_picture` takes it."""
    scores = {}
    for task, by_model in found.items():
        (_, first), *_ = by_model.values()
        models = {name: main_scores(results) for name, (_, results) in by_model.items()}
        scores[f"{task}\n{_metric(first)}"] = {"most frequent": [majority(first)], **models}
    return scores


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
    from keras_bert.tasks.finetuning.pictures import scores_picture

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
    with open(os.path.join(output, "worth.png"), "wb") as stream:
        stream.write(scores_picture(drawn(found), title))
    click.echo(lines)


if __name__ == "__main__":
    main()
