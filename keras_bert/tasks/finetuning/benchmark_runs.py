"""Fine-tuning one model on every task of a benchmark, one after the other."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keras_bert import files, whole_files
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.errors import MissingData, UserError
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.training.processes import agreement, by_chief, process_count, process_number
from keras_bert.training.run_folder import TASKS, RunFolder
from keras_bert.training.strategy import make_strategy


def finetune_benchmark(
    name: str,
    recipes: Mapping[str, FinetuneConfig],
    path: str,
    seeds: Sequence[int] = (),
    report: Callable[[str], object] = print,
    command: str | None = None,
    began: float | None = None,
) -> dict[str, Any] | None:
    """Trains each task in its own folder of `path`, skips those without data, and writes results.json.

    Args:
        name: the benchmark's, for messages.
        recipes: by task, all with the same `init` and devices.
        path: the folder to write to.
        seeds: one run per seed, see `FinetuningRuns.seeds`; a single run if empty.
        report: receives one line of text at a time.
        command: the command line, for the model cards; None if unknown.
        began: when the command began; see `FinetuningRuns`.

    Returns: `{task: results}`; None in processes other than the chief.

    Raises:
        UserError: no task has data, or a task's data or the settings are wrong.
    """
    began = time.monotonic() if began is None else began
    training = next(iter(recipes.values())).training
    strategy = make_strategy(training.strategy, training.devices, training.tpu)
    is_chief, results, left_out = process_number(strategy) == 0, {}, {}
    by_chief(strategy, lambda: RunFolder(path).require(TASKS))
    for task, recipe in recipes.items():
        folder = files.join(path, task)
        try:
            runs = FinetuningRuns(recipe, report, strategy, command, began)
        except UserError as error:
            # They failed together, and must go on together.
            if agreement(strategy)(float(isinstance(error, MissingData))) < process_count(strategy):
                raise
            left_out[task] = str(error)
            continue
        if is_chief:
            report(f"{task} from {recipe.init} → {folder}")
        results[task] = runs.seeds(folder, seeds) if seeds else runs.one(folder)
    if results and not is_chief:
        return None
    for task, reason in left_out.items():
        report(f"Skipped {task}: {reason}")
    if not results:
        raise UserError(f"{name}: needs the data of at least one task. Received: none. Give --data-dir.")
    whole_files.write_json(files.join(path, "results.json"), {"tasks": results, "left_out": left_out})
    return results
