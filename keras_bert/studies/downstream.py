"""Fine-tuning a model on the tasks of a plan, and the scores."""

import functools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from keras_bert.config.studies import TaskPlan
from keras_bert.core import files
from keras_bert.studies.runs import StudyRun
from keras_bert.studies.study import Findings, StudyFolder, median_and_range, rows_of_markdown
from keras_bert.tasks.finetuning.pictures import scores_picture
from keras_bert.tasks.finetuning.results import per_cent_scale

SCRATCH = "scratch:"  # Before a MODEL: its architecture and vocabulary with random weights.

Results = dict[str, Any]  # The content of a results.json of `finetune --seeds`.
_Found = TypeVar("_Found")


def finetunings(
    task: str, plan: TaskPlan, data: str, init: str, seeds: int, folder: str, origin: str | None = None
) -> dict[float, Callable[[], Results]]:
    """`{rate: function}`, one for each rate of a task's plan, that fine-tunes a model unless that is done.

    Args:
        data: the folder that the plan's folder is in.
        init: the model, or `scratch:MODEL`.
        seeds: how many seeds, from 1, unless the plan says it.
        folder: where the runs of each rate get their folders.
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
    """`{rate: run}`, one for each rate of a task's plan; the arguments are those of `finetunings`."""
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
    """The results of a run over all seeds; trains where they are not there yet."""
    results = run.results()
    if results is not None and results["seeds"] == list(seeds):
        return results
    return run.make({"--seeds": ",".join(map(str, seeds))})


def better(found: Mapping[float, _Found], scores: Callable[[_Found], Sequence[float]]) -> tuple[float, _Found]:
    """(rate, what was found at it) of the rate with the best median of its scores.

    Args:
        found: `{rate: what was found}`.
        scores: function (what was found) -> its scores over the seeds, such as `main_scores`.
    """
    return max(found.items(), key=lambda item: statistics.median(scores(item[1])))


def main_scores(results: Results) -> list[float]:
    """The main metric on the main split, of every seed, in per cent."""
    values = results["over_seeds"][main_split(results)][metric(results)]["values"]
    return [per_cent_scale(results["per_cent"]) * value for value in values]


def score_cell(results: Results) -> str:
    """The main metric over the seeds, in per cent, for a table."""
    return median_and_range(main_scores(results), "{:.1f}".format)


def majority(results: Results) -> float | None:
    """What the most frequent answer scores there, in per cent; None where that is no number."""
    value = results["baseline"][main_split(results)].get(metric(results))
    return per_cent_scale(results["per_cent"]) * value if isinstance(value, (int, float)) else None


def main_split(results: Results) -> str:
    """The first of the task's dev splits."""
    return next(iter(results["splits"]))


def metric(results: Results) -> str:
    """The task's main metric."""
    return results["main_metric"]


Found = Mapping[str, Mapping[str, tuple[float, Results]]]  # {task: {model: (rate, results)}}


def worth(
    study: StudyFolder, models: Mapping[str, str], tasks: Mapping[str, TaskPlan], data: str, seeds: int, title: str = ""
) -> Findings:
    """Trains every task with each of its rates and every seed; the rate with the better median counts, for each model.

    Args:
        study: the study's folder; the runs of a task are in TASK/MODEL/rate-RATE.
        models: `{name: model}`; each is any that `finetune --init` takes, or `scratch:MODEL`.
        data: the folder that the tasks' folders are in.
        seeds: how many seeds, from 1; a task's plan may have its own number.
    """
    parts = {
        (task, name, rate): make
        for task, plan in tasks.items()
        for name, init in models.items()
        for rate, make in finetunings(task, plan, data, init, seeds, study.join(task, name)).items()
    }
    labels = {part: f"{part[0]}: {part[1]} at {part[2]:g}" for part in parts}
    made = study.made({labels[part]: make for part, make in parts.items()}, "Fine-tuned")
    found = {
        task: {
            name: better({rate: made[labels[task, name, rate]] for rate in plan.rates}, main_scores) for name in models
        }
        for task, plan in tasks.items()
    }
    lines = list(table(found, list(models)))
    return Findings(title or "What the models are worth", lines, {"worth": scores_picture(drawn(found), title)})


def table(found: Found, models: Sequence[str]) -> Iterator[str]:
    """Lines of Markdown."""
    rows = (_row(task, [by_model[model] for model in models]) for task, by_model in found.items())
    return rows_of_markdown(["task", "metric", "most frequent answer", *models], rows)


def _row(task: str, found: Sequence[tuple[float, Results]]) -> list[str]:
    (_, first), *_ = found
    base = majority(first)
    scores = (f"{score_cell(results)} at {rate:g}" for rate, results in found)
    return [task, metric(first), "–" if base is None else f"{base:.1f}", *scores]


def drawn(found: Found) -> dict[str, dict[str, Sequence[float | None]]]:
    """What was found, as `scores_picture` takes it."""
    scores: dict[str, dict[str, Sequence[float | None]]] = {}
    for task, by_model in found.items():
        (_, first), *_ = by_model.values()
        models = {name: main_scores(results) for name, (_, results) in by_model.items()}
        scores[f"{task}\n{metric(first)}"] = {"most frequent": [majority(first)], **models}
    return scores
