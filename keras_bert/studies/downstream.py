"""Fine-tuning a model on the tasks of a plan, and the scores that came of it."""

import functools
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from keras_bert import files
from keras_bert.config.studies import TaskPlan
from keras_bert.studies.runs import StudyRun
from keras_bert.studies.tables import median_and_range
from keras_bert.tasks.finetuning.results_table import per_cent_scale

SCRATCH = "scratch:"  # Before a MODEL: its architecture and vocabulary with random weights.

Results = dict[str, Any]  # The content of a results.json of `finetune --seeds`.
_Found = TypeVar("_Found")


def finetunings(
    task: str, plan: TaskPlan, data: str, init: str, seeds: int, folder: str, origin: str | None = None
) -> dict[float, Callable[[], Results]]:
    """`{rate: function}`, one for each rate of a task's plan, that fine-tunes a model unless that is done.

    Args:
        task: the name of the plan.
        plan: the task's plan.
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
