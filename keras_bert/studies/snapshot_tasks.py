"""Fine-tuning from the snapshots of a pretraining run, of which the figures alone are kept."""

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from keras_bert import files
from keras_bert.config.studies import TaskPlan
from keras_bert.studies.downstream import Results, better, finetuning_runs, main_scores, seed_numbers
from keras_bert.studies.runs import StudyRun
from keras_bert.studies.study import StudyFolder
from keras_bert.tasks.finetuning.runs import summary
from keras_bert.tasks.pretraining.snapshots import Snapshots
from keras_bert.training.run_folder import RunFolder


def spread(steps: Sequence[int], most: int | None) -> Sequence[int]:
    """At most so many of the steps, the first and the last among them, at about equal ratios; all for None."""
    if most is None or most >= len(steps):
        return steps
    wanted = np.geomspace(steps[0], steps[-1], most)
    return sorted({min(steps, key=lambda step: abs(np.log(step / goal))) for goal in wanted})


def finetuned(
    study: StudyFolder,
    snapshots: Snapshots,
    steps: Sequence[int],
    tasks: Mapping[str, TaskPlan],
    data: str,
    seeds: int,
) -> dict[int, dict[str, Results]]:
    """`{step: {task: results}}`, each at its better rate.

    Args:
        study: the study's folder; the runs of a task are in TASK/step-STEP/rate-RATE, without their models.
        snapshots: the snapshots.
        steps: those to fine-tune from.
        tasks: `{task: its plan}`.
        data: the folder that the plans' folders are in.
        seeds: how many seeds, from 1, of a task whose plan does not say it; there may be more than last time.
    """
    parts: dict[str, Callable[[], Results]] = {}
    for step, (task, plan) in itertools.product(steps, tasks.items()):
        model, folder = study.join("snapshots", f"step-{step}"), study.join(task, f"step-{step}")
        runs = finetuning_runs(task, plan, data, model, folder, f"{snapshots.run.path}, step {step}")
        write = functools.partial(_write_snapshot, snapshots, step, model)
        for rate, run in runs.items():
            parts[f"{task} from step {step:,} at {rate:g}"] = functools.partial(
                _from_snapshot, run, seed_numbers(plan, seeds), write
            )
    made = study.made(parts, "Fine-tuned")
    files.remove_folder(study.join("snapshots"))
    return {
        step: {
            task: better({rate: made[f"{task} from step {step:,} at {rate:g}"] for rate in plan.rates}, main_scores)[1]
            for task, plan in tasks.items()
        }
        for step in steps
    }


def _write_snapshot(snapshots: Snapshots, step: int, model: str) -> None:
    """Writes a snapshot as a model folder, in place of the one before it."""
    if not files.exists(files.join(model, "config.json")):
        files.remove_folder(files.parent(model))
        snapshots.write(step, model)


def _from_snapshot(run: StudyRun, seeds: Sequence[int], write_snapshot: Callable[[], None]) -> Results:
    """Fine-tunes with the seeds that have no figures yet, and keeps the figures alone.

    The models of all snapshots would fill the disk. So `finetune` cannot be asked for finished seeds again: it would
    copy the model of the best one.
    """
    results = run.results()
    if results is None or results["seeds"] != list(seeds):
        by_seed = {seed: RunFolder(files.join(run.folder, f"seed-{seed}")) for seed in seeds}
        if missing := [seed for seed, folder in by_seed.items() if folder.results() is None]:
            write_snapshot()
            run.make({"--seeds": ",".join(map(str, missing))})
        results = summary({seed: folder.results() or {} for seed, folder in by_seed.items()})
        RunFolder(run.folder).write_results(results)
    for folder in (run.folder, *(files.join(run.folder, f"seed-{seed}") for seed in seeds)):
        for name in ("model", "checkpoints"):
            files.remove_folder(files.join(folder, name))
    return results
