"""The checkpoints of a pretraining run, opened as models one after the other."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.studies import TaskPlan
from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import read_yaml
from keras_bert.inference.loading import model_tokenizer
from keras_bert.models.bert.config import MASKED
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.studies.downstream import Results, better, finetuning_runs, main_scores, seed_numbers
from keras_bert.studies.runs import StudyRun
from keras_bert.studies.study import StudyFolder
from keras_bert.tasks.finetuning.runs import summary
from keras_bert.tasks.pretraining.engine import pretraining_engine
from keras_bert.training.metrics_log import read_metrics
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.strategy import make_strategy


class Snapshots:
    """The checkpoints of a finished pretraining run.

    Attributes:
        steps: the steps that have a checkpoint, ascending.

    Raises:
        UserError: the folder does not hold a finished pretraining run with at least two checkpoints.
    """

    def __init__(self, path: str):
        self.run = RunFolder(path)
        if not files.exists(self.run.config_file):
            raise UserError(f"{path}: needs the folder of a pretraining run. Received: one without config.yaml.")
        values = read_yaml(self.run.config_file)
        if "task" in values:
            raise UserError(f"{path}: needs a pretraining run. Received: one that fine-tuned on {values['task']}.")
        self.config = PretrainConfig.from_mapping(values)
        if self.config.objective.tokens != MASKED:
            raise UserError(
                f"{path}: needs a run that trained a masked LM. "
                f"Received: objective.tokens: {self.config.objective.tokens}."
            )
        if self.run.results() is None:
            raise UserError(f"{path}: needs a finished run. Received: one without results.json. Resume it first.")
        self.tokenizer = model_tokenizer(open_model_folder(self.run.model))
        self._engine = pretraining_engine(self.config, self.run, make_strategy("one"), self.tokenizer.vocabulary)
        self.steps = self._engine.checkpoints.steps()
        if len(self.steps) < 2:
            raise UserError(
                f"{self.run.checkpoints}: needs snapshots of the run. Received: {len(self.steps)}. "
                "Train with training.keep_every=N, which keeps a checkpoint every N steps."
            )

    @property
    def model(self) -> BertForPreTraining:
        """The model, which has the weights of a snapshot only inside `restored`."""
        return self._engine.model

    @contextlib.contextmanager
    def restored(self, step: int) -> Iterator[BertForPreTraining]:
        """Gives the model, during the block, the weights of a step, or their average if the run exports averages."""
        self._engine.checkpoints.restore(step)
        with self._engine.averaged_weights():
            yield self.model

    def write(self, step: int, folder: str) -> None:
        """Writes the model of a step as a model folder."""
        with self.restored(step) as model:
            tokenizer = self.tokenizer
            write_model_folder(
                folder, model, tokenizer.vocabulary, tokenizer.lower_case, prefix_space=tokenizer.prefix_space
            )

    def nats_below_unigram(self, step: int) -> float | None:
        """Nats below the unigram at [MASK]s of held-out text, at the last validation up to a step; None before any."""
        found = [line for line in self._validations if line["step"] <= step]
        return found[-1]["eval_mask_token_unigram_loss"] - found[-1]["eval_mask_token_loss"] if found else None

    @functools.cached_property
    def _validations(self) -> list[dict[str, Any]]:
        return [line for line in read_metrics(self.run.metrics_file) if "eval_mask_token_unigram_loss" in line]


def spread(steps: Sequence[int], most: int | None) -> Sequence[int]:
    """At most `most` of the steps, with the first and the last, at about equal ratios; all for None."""
    if most is None or most >= len(steps):
        return steps
    wanted = np.geomspace(steps[0], steps[-1], most)
    return sorted({min(steps, key=lambda step: abs(np.log(step / goal))) for goal in wanted})


def finetuned(
    study: StudyFolder, snapshots: Snapshots, steps: Sequence[int], tasks: Mapping[str, TaskPlan], data: str, seeds: int
) -> dict[int, dict[str, Results]]:
    """`{step: {task: results}}`, each at its better rate.

    Args:
        study: the study's folder; the runs of a task are in TASK/step-STEP/rate-RATE, without their models.
        data: the folder that contains the plans' folders.
        seeds: the number of seeds, from 1, of a task whose plan has none; there may be more than last time.
    """
    files.remove_folder(study.join("snapshots"))  # An interrupted study may have left one, even of another run.
    parts: dict[tuple[str, int, float], Callable[[], Results]] = {}
    for step, (task, plan) in itertools.product(steps, tasks.items()):
        model, folder = study.join("snapshots", f"step-{step}"), study.join(task, f"step-{step}")
        runs = finetuning_runs(task, plan, data, model, folder, f"{snapshots.run.path}, step {step}")
        write = functools.partial(_write_snapshot, snapshots, step, model)
        for rate, run in runs.items():
            parts[task, step, rate] = functools.partial(_from_snapshot, run, seed_numbers(plan, seeds), write)
    made = study.made(parts, "Fine-tuned", "{} from step {:,} at {:g}")
    files.remove_folder(study.join("snapshots"))
    return {
        step: {
            task: better({rate: made[task, step, rate] for rate in plan.rates}, main_scores)[1]
            for task, plan in tasks.items()
        }
        for step in steps
    }


def _write_snapshot(snapshots: Snapshots, step: int, model: str) -> None:
    """Writes a snapshot as a model folder, which replaces the one before it."""
    if not files.exists(files.join(model, "config.json")):
        files.remove_folder(files.parent(model))
        snapshots.write(step, model)


def _from_snapshot(run: StudyRun, seeds: Sequence[int], write_snapshot: Callable[[], None]) -> Results:
    """Fine-tunes with the seeds that have no results yet, and keeps only the results.

    The models of all snapshots would fill the disk. Without them, `finetune` cannot be given finished seeds again: it
    would copy the model of the best one.
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
