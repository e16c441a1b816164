"""Fine-tuning a model on the tasks of a plan, and the scores."""

import functools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from keras_bert.config.studies import TaskPlan, WorthTaskPlan
from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.studies.paired_bootstrap import RESAMPLES, Difference, paired_difference
from keras_bert.studies.runs import StudyRun
from keras_bert.studies.study import Findings, StudyFolder, cell, median_and_range, rows_of_markdown
from keras_bert.tasks.finetuning.pictures import Bars, Groups, scores_picture
from keras_bert.tasks.finetuning.results import per_cent_scale
from keras_bert.training.run_folder import RunFolder

SCRATCH = "scratch:"  # Before a MODEL: its architecture and vocabulary with random weights.

_FEWEST = 6  # Dev examples. That one model is better on each of five happens by chance once in sixteen times.
Results = dict[str, Any]  # The content of a results.json of `finetune --seeds`.
_Found = TypeVar("_Found")


def finetunings(
    task: str, plan: TaskPlan, data: str, init: str, seeds: int, folder: str, origin: str | None = None
) -> dict[float, Callable[[], Results]]:
    """`{rate: function}` for each rate of a task's plan; the function fine-tunes a model unless that is done.

    Args:
        data: the folder that contains the plan's folder.
        init: the model, or `scratch:MODEL`.
        seeds: the number of seeds, from 1, unless the plan has its own.
        folder: the folder for the runs of each rate.
        origin: as for `StudyRun`.
    """
    numbers = seed_numbers(plan, seeds)
    return {
        rate: functools.partial(finetune, run, numbers)
        for rate, run in finetuning_runs(task, plan, data, init, folder, origin).items()
    }


def finetuning_runs(
    task: str, plan: TaskPlan, data: str, init: str, folder: str, origin: str | None = None
) -> dict[float, StudyRun]:
    """`{rate: run}` for each rate of a task's plan; the arguments are those of `finetunings`."""
    options: dict[str, str | None] = {
        "--task": plan.task or task,
        "--init": init.removeprefix(SCRATCH),
        "--data-dir": files.join(data, plan.folder),
    }
    if init.startswith(SCRATCH):
        options["--from-scratch"] = None
    return {
        rate: StudyRun(
            files.join(folder, f"rate-{rate:g}"),
            "finetune",
            options,
            {**plan.set, "optimizer.learning_rate": rate, "training.keep_checkpoints": 1},
            origin,
        )
        for rate in plan.rates
    }


def seed_numbers(plan: TaskPlan, seeds: int) -> list[int]:
    """The seeds of a task, from 1: as many as its plan says, else `seeds`."""
    return list(range(1, (plan.seeds or seeds) + 1))


def finetune(run: StudyRun, seeds: Sequence[int]) -> Results:
    """The results of a run over all seeds; trains if they are incomplete."""
    results = run.results()
    if results is not None and results["seeds"] == list(seeds):
        return results
    return run.make({"--seeds": ",".join(map(str, seeds))})


def better(found: Mapping[float, _Found], scores: Callable[[_Found], Sequence[float]]) -> tuple[float, _Found]:
    """`(rate, its results)` for the rate with the best median score.

    Args:
        scores: function (results) -> their scores over the seeds, such as `main_scores`.
    """
    return max(found.items(), key=lambda item: statistics.median(scores(item[1])))


def main_scores(results: Results, name: str | None = None) -> list[float]:
    """The main metric, or the one named, of every seed on the main split, in per cent."""
    values = results["over_seeds"][main_split(results)][name or metric(results)]["values"]
    return [per_cent_scale(results["per_cent"]) * value for value in values]


def score_cell(results: Results, name: str | None = None) -> str:
    """The median and range of `main_scores`, for a table."""
    return median_and_range(main_scores(results, name), "{:.1f}".format)


def baseline(results: Results, name: str | None = None, of: str = "baseline") -> float | None:
    """The score of the most frequent answer on the main split, in per cent; None if it is not a number.

    Args:
        name: the name of a metric; None for the main one.
        of: another baseline in the results, such as "overlap".
    """
    value = results.get(of, {}).get(main_split(results), {}).get(name or metric(results))
    return per_cent_scale(results["per_cent"]) * value if isinstance(value, (int, float)) else None


def main_split(results: Results) -> str:
    """The first of the task's dev splits."""
    return next(iter(results["splits"]))


def metric(results: Results) -> str:
    """The task's main metric."""
    return results["main_metric"]


Found = Mapping[str, Mapping[str, tuple[float, Results]]]  # {task: {model: (rate, results)}}


def worth(
    study: StudyFolder,
    models: Mapping[str, str],
    tasks: Mapping[str, WorthTaskPlan],
    data: str,
    seeds: int,
    title: str = "",
) -> Findings:
    """Fine-tunes each model on every task with each rate and seed; the rate with the best median counts.

    Args:
        study: the study's folder; the runs of a task are in TASK/MODEL/rate-RATE.
        models: `{name: model}`; each is any that `finetune --init` takes, or `scratch:MODEL`.
        data: the folder that contains the tasks' folders.
        seeds: the number of seeds, from 1; a task's plan may have its own.
    """
    parts = {
        (task, name, rate): functools.partial(_checked, task, plan, make)
        for task, plan in tasks.items()
        for name, init in models.items()
        for rate, make in finetunings(task, plan, data, init, seeds, study.join(task, name)).items()
    }
    made = study.made(parts, "Fine-tuned", "{}: {} at {:g}")
    found = {
        task: {name: better({rate: made[task, name, rate] for rate in plan.rates}, main_scores) for name in models}
        for task, plan in tasks.items()
    }
    examples = {
        (task, name): examples_of(study.join(task, name, f"rate-{rate:g}"), results)
        for task, by_model in found.items()
        for name, (rate, results) in by_model.items()
    }
    names = list(models)
    lines = [*table(found, names, tasks), "", *differences(found, names, tasks, examples)]
    return Findings(title or "What the models are worth", lines, {"worth": scores_picture(drawn(found), title)})


def table(found: Found, models: Sequence[str], tasks: Mapping[str, WorthTaskPlan]) -> Iterator[str]:
    """Lines of Markdown: a row for each metric of each task."""
    rows = (
        _row(task, name, [found[task][model] for model in models])
        for task in found
        for name in _metrics(task, found, tasks)
    )
    return rows_of_markdown(["task", "metric", "most frequent answer", "shared pieces", *models], rows)


def _checked(task: str, plan: WorthTaskPlan, make: Callable[[], Results]) -> Results:
    """The results of a part. Raises `UserError` if the plan names a metric that the task lacks."""
    results = make()
    known = [name for name in results["over_seeds"][main_split(results)] if name != "loss"]
    if unknown := [name for name in plan.metrics if name not in known]:
        raise UserError(f"{task}.metrics: needs metrics of {', '.join(known)}. Received: {unknown[0]}.")
    return results


def _metrics(task: str, found: Found, tasks: Mapping[str, WorthTaskPlan]) -> list[str]:
    """The main metric of a task, and the others in its plan."""
    (_, results), *_ = found[task].values()
    return list(dict.fromkeys([metric(results), *tasks[task].metrics]))


def _row(task: str, name: str, found: Sequence[tuple[float, Results]]) -> list[str]:
    (_, first), *_ = found
    bases = (baseline(first, name, of) for of in ("baseline", "overlap"))
    scores = (f"{score_cell(results, name)} at {rate:g}" for rate, results in found)
    return [task, name, *map(cell, bases), *scores]


# {(task, model): {metric: float [seeds, examples, 2], of `Problem.by_example`}}; None where a seed has none.
Examples = Mapping[tuple[str, str], Mapping[str, np.ndarray] | None]


def examples_of(folder: str, results: Results) -> dict[str, np.ndarray] | None:
    """The value in `Examples` for the runs in a folder, on the main split."""
    of_seeds = [RunFolder(files.join(folder, f"seed-{seed}")).examples() for seed in results["seeds"]]
    of_split = [found[main_split(results)] for found in of_seeds if found]
    if len(of_split) < len(of_seeds):
        return None
    return {name: np.stack([found[name] for found in of_split]) for name in of_split[0]}


def differences(
    found: Found, models: Sequence[str], tasks: Mapping[str, WorthTaskPlan], examples: Examples
) -> Iterator[str]:
    """Lines of Markdown: how much better each model is than the first, and whether that may be chance."""
    control, *others = models
    if not others:
        return
    yield (
        f"Difference from {control}: the mean over the seeds, and the 95% interval of {RESAMPLES:,} paired bootstrap "
        "samples of dev examples and seeds. **Bold** where the interval excludes 0."
    )
    yield ""
    rows, reasons = [], dict[str, None]()
    for task in found:
        for name in _metrics(task, found, tasks):
            row = [task, name]
            for model in others:
                ours, base = examples[task, model], examples[task, control]
                reason = _reason(name, {model: ours, control: base})
                if reason or ours is None or base is None:
                    reasons[f"{task}: no interval, because {reason}."] = None
                    row.append("")
                else:
                    row.append(_shown(paired_difference(ours[name], base[name], name)))
            rows.append(row)
    yield from rows_of_markdown(["task", "metric", *(f"{model} − {control}" for model in others)], rows)
    for reason in reasons:
        yield from ("", reason)


def _reason(name: str, examples: Mapping[str, Mapping[str, np.ndarray] | None]) -> str:
    """Why there is no interval of a metric's difference between two models; "" if there is one."""
    for model, of_metrics in examples.items():
        if of_metrics is None:
            return f"the runs of {model} lack examples.json, which older versions did not write"
        if name not in of_metrics:
            return f"examples.json has nothing about {name}"
    shapes = {of_metrics[name].shape for of_metrics in examples.values() if of_metrics}
    if len(shapes) > 1:
        return "the models were scored on different examples"
    (_, count, _), *_ = shapes
    return f"{count} dev examples are too few to rule out chance, which takes {_FEWEST}" if count < _FEWEST else ""


def _shown(difference: Difference) -> str:
    mean, low, high = (f"{100 * value:+.1f}".replace("-", "−") for value in difference)
    text = f"{mean} ({low} to {high})"
    return f"**{text}**" if difference.is_one else text


def drawn(found: Found) -> Groups:
    """The scores in the form for `scores_picture`."""
    scores: dict[str, Bars] = {}
    for task, by_model in found.items():
        (_, first), *_ = by_model.values()
        models = {name: main_scores(results) for name, (_, results) in by_model.items()}
        scores[f"{task}\n{metric(first)}"] = {"most frequent": [baseline(first)], **models}
    return scores
