"""What models are worth: each fine-tuned the same way on several tasks."""

from collections.abc import Iterator, Mapping, Sequence

from keras_bert.config.studies import TaskPlan
from keras_bert.studies.downstream import Results, better, finetunings, main_scores, majority, metric, score_cell
from keras_bert.studies.study import Findings, StudyFolder
from keras_bert.studies.tables import rows_of_markdown
from keras_bert.tasks.finetuning.pictures import scores_picture

Found = Mapping[str, Mapping[str, tuple[float, Results]]]  # {task: {model: (rate, results)}}


def worth(
    study: StudyFolder, models: Mapping[str, str], tasks: Mapping[str, TaskPlan], data: str, seeds: int, title: str = ""
) -> Findings:
    """Trains every task with each of its rates and every seed; the rate with the better median counts, for each model.

    Args:
        study: the study's folder; the runs of a task are in TASK/MODEL/rate-RATE.
        models: `{name: model}`; each is any that `finetune --init` takes, or `scratch:MODEL`.
        tasks: `{task: its plan}`.
        data: the folder that the tasks' folders are in.
        seeds: how many seeds, from 1; a task's plan may have its own number.
        title: the title of the picture and the page.
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
