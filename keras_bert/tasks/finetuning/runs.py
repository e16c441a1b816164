"""Fine-tuning runs of one recipe: a single one, one per seed, or one per point of a grid."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_bert.checkpoints.adapter import ADAPTER_CONFIG, is_adapter
from keras_bert.checkpoints.model_folder import CONFIG, open_model_folder
from keras_bert.checkpoints.writing import describe_folder
from keras_bert.config.features import feature_layers
from keras_bert.config.finetuning import FinetuneConfig, default_rate
from keras_bert.core import files, messages, whole_files
from keras_bert.core.errors import MissingData, UserError
from keras_bert.inference.loading import model_tokenizer
from keras_bert.models.kind import kind_of_config
from keras_bert.tasks.finetuning.frozen_features import require_one_process
from keras_bert.tasks.finetuning.run import Finetuning
from keras_bert.tasks.finetuning.teacher import Teacher
from keras_bert.tasks.kind import kind_of_head
from keras_bert.tasks.model_cards import finetuning_card
from keras_bert.tasks.problem import open_problem
from keras_bert.tasks.run_data import require_same_model
from keras_bert.training.cluster import explained_lost_worker
from keras_bert.training.processes import agreement, by_chief, fail_together, process_count, process_number
from keras_bert.training.run_folder import INIT, SEEDS, SWEEP, TASKS, RunFolder
from keras_bert.training.run_loggers import require_loggers
from keras_bert.training.strategy import make_strategy

_log = logging.getLogger(__name__)

# Paper, appendix A.3; the rates are BERT-base's.
GRID: dict[str, tuple[float, ...]] = {
    "batch_size": (16, 32),
    "learning_rate": (5e-5, 3e-5, 2e-5),
    "epochs": (2.0, 3.0, 4.0),
}
Results = dict[str, Any]  # The content of a results.json.


class FinetuningRuns:
    """Runs of one recipe from one model, which share what they can; see `tasks.finetuning.run.Finetuning`.

    All methods return None in processes other than the chief.

    Args:
        config: the recipe, with `init`.
        strategy: the runs' strategy; by default the one in the recipe.
        command: the command line, for the model cards; None if unknown.
        started_at: when the command began, from `time.monotonic`; None for now. `training.max_minutes` counts from
            then, for all runs together.
        callbacks: see `training.callbacks.Callbacks`.

    Attributes:
        config: the recipe, with the resolved revision of `init`.
        is_chief: whether this process writes the runs' files.

    Raises:
        UserError: the model or the task's data cannot be used.
    """

    def __init__(
        self,
        config: FinetuneConfig,
        strategy: tf.distribute.Strategy | None = None,
        command: str | None = None,
        started_at: float | None = None,
        callbacks: Iterable[keras.callbacks.Callback] = (),
    ):
        self._started_at = time.monotonic() if started_at is None else started_at
        training = config.training
        if config.init is None:
            raise ValueError("config: needs init, the model to start from. Received: None.")
        self._folder = open_model_folder(config.init, config.lower_case)
        # Recorded with its current revision.
        self.config = config = dataclasses.replace(config, init=self._folder.name)
        self.strategy = strategy or make_strategy(training.strategy, training.devices, training.tpu)
        self.is_chief = process_number(self.strategy) == 0
        self._command = command
        self._callbacks = list(callbacks)
        if not self.is_chief:
            messages.mute()
        with fail_together(agreement(self.strategy)):
            require_loggers(training)
            self._open()

    def _open(self) -> None:
        """Opens the task, so that errors in its data show before anything is written."""
        config = self.config
        self._tokenizer = model_tokenizer(self._folder)
        for line in self._folder.notes:
            _log.info(line)
        stated, rate = self._folder.other_fields.get("classifier_dropout"), self._folder.config.head_dropout_prob
        if stated not in (None, rate) and config.training.dropout is None:
            _log.info(
                f"{self._folder.path}: the classifier_dropout {stated} of config.json is not used here: the head has "
                f"the dropout {rate} of the other layers. training.dropout sets both."
            )
        self._folder.require_positions(config.input.max_length)
        kind = kind_of_config(self._folder.config)
        config.initialization.as_initialization().require_for(kind)
        if config.features.kind:
            feature_layers(config.features.kind, self._folder.config.num_blocks)
            require_one_process()
        self.problem = open_problem(config, self._tokenizer)
        if config.training.lora_rank and not kind.attends:
            raise UserError(
                f"training.lora_rank: needs a model with BERT's attention. Received: {self._folder.path}, of type "
                f"{kind.model_type}. Leave it out, or start from a BERT."
            )
        self._teacher = Teacher(config, self.problem) if config.teacher.model else None
        if self._teacher:
            taught = dataclasses.replace(config.teacher, model=self._teacher.folder.name)
            self.config = dataclasses.replace(config, teacher=taught)
        kind_of_head(self.problem.head).require_start(self._folder)
        for split in ("train", *self.problem.dev_splits):
            self.problem.rows(split)
        if config.data.test:  # Read after training, when an error would come too late; here its beginning is enough.
            next(iter(self.problem.windows("test")), None)
        train = config.data.train
        for split, own in (("dev", config.data.dev), ("test", config.data.test)):
            if own and train and files.real(own) == files.real(train):
                _log.warning(f"{own}: is train and {split}, so its scores say nothing about other texts. Give another.")
        self.problem.require_different_answers()
        for line in self.problem.notes:
            _log.info(line)

    @explained_lost_worker()
    def one(self, path: str, **changes: Any) -> Results | None:
        """Runs once in the folder `path`; returns the results.

        Args:
            changes: settings that replace the recipe's: of `training`, and `learning_rate`.
        """
        rate = changes.pop("learning_rate", self.config.optimizer.learning_rate) or self._default_rate(path)
        config = dataclasses.replace(
            self.config,
            training=dataclasses.replace(self.config.training, **changes),
            optimizer=dataclasses.replace(self.config.optimizer, learning_rate=rate),
        )
        with RunFolder(path) as run:
            return Finetuning(
                config,
                run,
                self.problem,
                self._folder,
                self._tokenizer,
                self.strategy,
                self._command,
                self._started_at,
                self._callbacks,
                self._teacher,
            ).finetune()

    def _default_rate(self, *paths: str) -> float:
        """The rate of runs that are given none: the rate of the first begun one, else one for the model's width."""
        settings = (RunFolder(path).begun_settings() or {} for path in paths)
        begun = next(filter(None, (values.get("optimizer", {}).get("learning_rate") for values in settings)), None)
        model = self._folder.config
        rate = begun or self._rate_from(self.config.optimizer.base_rate)
        size = f"{model.num_hidden_layers} × {model.hidden_size}"
        trained = "LoRA on a model" if self.config.training.lora_rank else "a model"
        why = "with which the run began" if begun else f"the default for {trained} of {size}"
        _log.info(f"Learning rate {rate:g}, {why}.")
        return rate

    def _rate_from(self, base_rate: float) -> float:
        return default_rate(base_rate, self._folder.config.hidden_size, self.config.training.lora_rank > 0)

    @explained_lost_worker()
    def seeds(self, path: str, seeds: Sequence[int]) -> Results | None:
        """Runs once per seed, in `path`/seed-N; the best one's model becomes `path`/model. Returns the `summary`."""
        found, folders = {}, {seed: files.join(path, f"seed-{seed}") for seed in seeds}
        with RunFolder(path) as run:
            by_chief(self.strategy, lambda: self._hold(run))
            rate = self.config.optimizer.learning_rate or self._default_rate(*folders.values())
            for seed, folder in folders.items():
                _log.info(f"Seed {seed}:")
                found[seed] = self.one(folder, seed=seed, learning_rate=rate)
            return by_chief(self.strategy, lambda: self._write_seeds(run, found))

    def _hold(self, run: RunFolder) -> None:
        """Locks the folder of several seeds, unless it holds something else, or runs from other weights."""
        run.require(SEEDS)
        run.hold()
        self._require_same_init(run)

    def _require_same_init(self, run: RunFolder) -> None:
        if not self.config.from_scratch:
            require_same_model(run, INIT, self._folder)

    def _write_seeds(self, run: RunFolder, found: Mapping[int, Any]) -> Results:
        results = summary(found)
        best = RunFolder(files.join(run.path, f"seed-{results['best_seed']}"))
        with whole_files.whole_folder(run.model, last=CONFIG) as aside:
            files.copy_folder(whole_files.surviving_folder(best.model), aside)
            config = FinetuneConfig.from_file(best.config_file)
            describe_folder(aside, finetuning_card(config, run.path, results, self._command))
        if is_adapter(best.adapter):
            with whole_files.whole_folder(run.adapter, last=ADAPTER_CONFIG) as aside:
                files.copy_folder(best.adapter, aside)
        run.write_results(results)
        return results

    @explained_lost_worker()
    def sweep(self, path: str) -> list[tuple[dict[str, float], Results]] | None:
        """Runs once per point of `GRID`, its rates scaled to the model, in folders of `path`.

        TensorBoard's page HPARAMS compares them.

        Returns: `[({setting: value}, results)]`, the best first.
        """
        run = RunFolder(path)
        by_chief(self.strategy, lambda: run.require(SWEEP))
        by_chief(self.strategy, lambda: self._require_same_init(run))
        grid = {**GRID, "learning_rate": tuple(map(self._rate_from, GRID["learning_rate"]))}
        found: list[tuple[dict[str, float], Any]] = []
        for values in itertools.product(*grid.values()):
            point = dict(zip(grid, values))
            _log.info(f"{point_name(point)}:")
            found.append((point, self.one(files.join(path, point_name(point)), **point, steps=0, minutes=0.0)))
        split, metric = self.problem.dev_splits[0], self.problem.main_metric
        return sorted(found, key=lambda pair: -pair[1]["splits"][split][metric]) if self.is_chief else None


def point_name(point: Mapping[str, float]) -> str:
    """The name of the folder of a point of a sweep."""
    return "-".join(f"{key}-{value:g}" for key, value in point.items())


def summary(results: Mapping[int, Results]) -> Results:
    """The results of several seeds in one.

    Args:
        results: `{seed: results}`.

    Returns: results of the same form, in which each figure is the median over the seeds. They also have `seeds`,
        `best_seed` (by the main metric on the main split) and `over_seeds`, `{split: {metric: {median, mean, std,
        best, values}}}`, `std` with n - 1.
    """
    first = next(iter(results.values()))
    metric, main_split = first["main_metric"], next(iter(first["splits"]))
    over_seeds = {
        split: _over_seeds([result["splits"][split] for result in results.values()]) for split in first["splits"]
    }
    return {
        **{key: first[key] for key in ("task", "main_metric", "per_cent", "steps", "lasts", "baseline")},
        "counts": first.get("counts", {}),  # Older versions did not count.
        "overlap": first.get("overlap", {}),
        **{key: first[key] for key in ("noise", "prepared") if key in first},
        "seeds": list(results),
        "best_seed": max(results, key=lambda seed: results[seed]["splits"][main_split][metric]),
        "splits": {
            split: {name: spread["median"] for name, spread in figures.items()} for split, figures in over_seeds.items()
        },
        "over_seeds": over_seeds,
        "seconds": round(sum(result["seconds"] for result in results.values()), 1),
        "warnings": [f"Seed {seed}: {line}" for seed, result in results.items() for line in result["warnings"]],
    }


def _over_seeds(figures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`{metric: spread}` of one split. A label's scores are 0 in a seed that lacks them: 0/0 counts as 0."""
    everything = {name: value for found in figures for name, value in found.items()}
    names = [name for name, value in everything.items() if isinstance(value, (int, float))]
    return {name: _spread([found.get(name, 0.0) for found in figures], lower=name == "loss") for name in names}


def _spread(values: list[float], lower: bool) -> dict[str, Any]:
    return {
        "median": float(np.median(values)),
        "mean": float(np.mean(values)),
        "std": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
        "best": min(values) if lower else max(values),
        "values": values,
    }


def finetune_benchmark(
    name: str,
    recipes: Mapping[str, FinetuneConfig],
    path: str,
    seeds: Sequence[int] = (),
    command: str | None = None,
    started_at: float | None = None,
) -> dict[str, Any] | None:
    """Trains each task in its own folder of `path`, skips those without data, and writes results.json.

    Args:
        name: the benchmark's name, for messages.
        recipes: `{task: recipe}`, all with the same `init` and devices.
        seeds: one run per seed, see `FinetuningRuns.seeds`; a single run if empty.
        command: the command line, for the model cards; None if unknown.
        started_at: when the command began; see `FinetuningRuns`.

    Returns: `{task: results}`; None in processes other than the chief.

    Raises:
        UserError: no task has data, or a task's data or the settings are wrong.
    """
    started_at = time.monotonic() if started_at is None else started_at
    training = next(iter(recipes.values())).training
    strategy = make_strategy(training.strategy, training.devices, training.tpu)
    is_chief, results, left_out = process_number(strategy) == 0, {}, {}
    by_chief(strategy, lambda: RunFolder(path).require(TASKS))
    for task, recipe in recipes.items():
        folder = files.join(path, task)
        try:
            runs = FinetuningRuns(recipe, strategy, command, started_at)
        except UserError as error:
            # The processes failed together, and must go on together.
            if agreement(strategy)(float(isinstance(error, MissingData))) < process_count(strategy):
                raise
            left_out[task] = str(error)
            continue
        if is_chief:
            _log.info(f"{task} from {recipe.init} → {folder}")
        results[task] = runs.seeds(folder, seeds) if seeds else runs.one(folder)
    if results and not is_chief:
        return None
    for task, reason in left_out.items():
        _log.info(f"Skipped {task}: {reason}")
    if not results:
        raise UserError(f"{name}: needs the data of at least one task. Received: none. Give --data-dir.")
    whole_files.write_json(files.join(path, "results.json"), {"tasks": results, "left_out": left_out})
    return results
