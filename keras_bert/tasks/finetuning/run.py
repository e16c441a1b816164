"""A whole fine-tuning run: a BERT and a task → training → the best checkpoint → model folder and results."""

from __future__ import annotations

import copy
import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_bert import extras, files
from keras_bert.checkpoints.model_folder import ModelFolder
from keras_bert.checkpoints.model_writing import write_model_folder
from keras_bert.checkpoints.names import heads
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.data.batches.length_batches import LengthBatches
from keras_bert.data.batches.static_shapes import choose_shapes
from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.errors import UserError
from keras_bert.models.first_values import set_first_values
from keras_bert.tasks.evaluation import Evaluator
from keras_bert.tasks.finetuning.early_stopping import validations_since_best
from keras_bert.tasks.finetuning.frozen_features import FrozenFeatures
from keras_bert.tasks.finetuning.pictures import write_run_pictures
from keras_bert.tasks.model_cards import finetuning_card
from keras_bert.tasks.phased_batches import PhasedBatches
from keras_bert.tasks.problem import Answers, Problem
from keras_bert.tasks.run_data import require_same_data
from keras_bert.text.tokenizer import WordPieceTokenizer
from keras_bert.training.engine import Engine, make_engine
from keras_bert.training.figures_table import Column
from keras_bert.training.loop import Loop
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.optimizers.base import BertOptimizer
from keras_bert.training.processes import (
    agreement,
    by_chief,
    chief_says,
    failing_together,
    process_number,
    require_same,
    settle,
)
from keras_bert.training.run_context import run_context
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.strategy import check_divisible, describe

_MOST_SHAPES = 8
# Each shape has to be compiled, which takes as long as some tens of steps.
_STEPS_A_SHAPE = 60
_METRICS_SHOWN = 3
# The least warm-up of a run limited by time. Its share of the time may cover hardly any steps, because the first ones
# are compiled in it.
_WARMUP_STEPS_BY_THE_CLOCK = 100


class Finetuning:
    """One process of one fine-tuning run, from its settings to its model folder.

    Args:
        config: the recipe.
        run: the run's folder, which is settled here.
        problem: the task.
        folder: the model to start from.
        tokenizer: the model's tokenizer.
        strategy: the run's strategy.
        report: receives one line of text at a time, in the chief only.
        command: the command line, for the model card; None if unknown.

    Attributes:
        is_chief: whether this process writes the run's files.
        source, engine, model, evaluate, batches: the parts of the run, made by `build`.
        baseline: `Problem.baseline` of each dev split, from `build`.
    """

    is_chief: bool
    source: LengthBatches
    engine: Engine
    model: keras.Model
    evaluate: Evaluator
    batches: PhasedBatches
    baseline: dict[str, dict[str, float]]

    def __init__(
        self,
        config: FinetuneConfig,
        run: RunFolder,
        problem: Problem,
        folder: ModelFolder,
        tokenizer: WordPieceTokenizer,
        strategy: tf.distribute.Strategy,
        report: Callable[[str], object] = print,
        command: str | None = None,
    ):
        self.config = config
        self.run = run
        self.problem = problem
        self.folder = folder
        self.tokenizer = tokenizer
        self.strategy = strategy
        self.command = command
        self.is_chief = process_number(strategy) == 0
        # The answers of the last validation, which is often the best one: for SQuAD they take minutes to compute.
        self._validated: dict[tuple[str, int], tuple[Answers, dict[str, float]]] = {}
        self.report = report if self.is_chief else lambda line: None
        check_divisible(config.training.batch_size, strategy, config.training.accumulation, "training.batch_size")
        settle(strategy, run, config, self.report)
        by_chief(strategy, lambda: require_same_data(run, problem))

    def finetune(self) -> dict[str, Any] | None:
        """Trains, resuming from the newest checkpoint, and writes the model folder and results.json.

        Returns: the results; None in processes other than the chief.
        """
        if chief_says(self.strategy, self._found_finished):
            return self.run.results() if self.is_chief else None
        began = time.perf_counter()
        self.build()
        done = self.restore()
        if self.config.features.kind:
            self.take_features()
        done = self.train(done)
        return self.write_results(done, began)

    def _found_finished(self) -> bool:
        finished = self.run.results()
        if not finished or finished["lasts"] != self._length():
            return False
        self.report(f"{self.run.path} is finished: {finished['steps']:,} steps. --fresh starts over.")
        return True

    def _length(self) -> dict[str, float]:
        training = self.config.training
        return {key: getattr(training, key) for key in ("epochs", "steps", "minutes")}

    def build(self) -> None:
        """Makes every part of the run."""
        config, training, problem = self.config, self.config.training, self.problem
        self.report(describe(self.strategy))
        if not problem.dev_splits:
            raise UserError(
                f"{config.task}: needs dev examples, to choose the best epoch by. Received: none. Give --dev."
            )
        rows = problem.rows("train")
        # Computed before training, so that a dev split without labels fails now and not at the first validation.
        self.baseline = {split: problem.baseline(split) for split in problem.dev_splits}
        pad_id = self.tokenizer.vocabulary.pad_id
        widths, group_sizes = choose_shapes(rows, self._most_shapes(rows))
        self.source = LengthBatches(rows, training.batch_size, training.seed, pad_id, widths, group_sizes=group_sizes)
        self.report(
            f"{len(rows):,} rows for training, {self.source.batches_per_epoch:,} batches of {training.batch_size} "
            f"an epoch, {self.source.padding_share:.1%} of their tokens padding."
        )
        self._steps_per_epoch = self.source.batches_per_epoch
        steps = training.steps or math.ceil(training.epochs * self._steps_per_epoch)

        def make_model(dtype: str) -> keras.Model:
            model = problem.make_model(self.folder.config, dtype)
            if training.freeze:
                model.encoder.trainable = False
            return model

        self.engine = make_engine(
            self.strategy,
            self.run,
            training,
            steps,
            [1.0],
            make_model,
            lambda budget, model: self._optimizer(steps, budget.share, model),
            problem.objective,
            config.optimizer.clip_norm,
        )
        self.model = self.engine.model
        self.evaluate = Evaluator(problem, self.model, pad_id, self.strategy, training.batch_size)
        self.batches = PhasedBatches(
            [self.source], self.engine.budget, self.strategy.experimental_distribute_dataset, training.steps_per_loop
        )

    def _optimizer(self, steps: int, share: tf.Variable | None, model: keras.Model) -> BertOptimizer:
        optimizer_config = self.config.optimizer
        if optimizer_config.warmup_steps:
            return make_optimizer(optimizer_config, steps, share, model=model)
        if share is None:
            warmup = optimizer_config.warmup_share * steps
        else:
            warmup = min(optimizer_config.warmup_share * self._steps_per_epoch, _WARMUP_STEPS_BY_THE_CLOCK)
        optimizer_config = dataclasses.replace(optimizer_config, warmup_steps=round(warmup))
        return make_optimizer(optimizer_config, steps, share, optimizer_config.warmup_share, model)

    def _most_shapes(self, rows: TokenRows) -> int:
        training = self.config.training
        if training.minutes:
            return _MOST_SHAPES
        steps = training.steps or training.epochs * len(rows) / training.batch_size
        return min(max(int(steps / _STEPS_A_SHAPE), 1), _MOST_SHAPES)

    def restore(self) -> int:
        """Restores the newest checkpoint or, without one, loads the weights of `init`; returns the steps done."""
        return self.engine.start(self.run, self.config, self._begin, self.report)

    def _begin(self) -> None:
        config = self.config
        lines: list[str] = []
        with failing_together(agreement(self.strategy)):
            if not config.from_scratch:
                loaded = self.folder.load_into(self.model, new_parts=() if self._has_same_head() else heads())
                lines += [f"Starting from the weights of {self.folder.name}.", *loaded.lines()]
            replaced = config.initialization
            set_first_values(self.model, replaced.as_initialization(), None, None, config.training.seed)
        lines += [f"{part}: replaced, {value}." for part, value in vars(replaced).items() if value]
        if lines:
            self.report("\n".join(lines))

    def _has_same_head(self) -> bool:
        """Whether `init` was fine-tuned with the same head as this task's, which is then kept."""
        try:
            return self.folder.head == self.problem.head
        except UserError:  # Its head is incomplete, but its encoder can be used.
            return False

    def take_features(self) -> None:
        """Adds the frozen encoder's features to the rows; call it once the weights are restored."""
        folder = self.config.features.folder or files.join(files.parent(self.run.path), "features")
        pad_id, batch_size = self.tokenizer.vocabulary.pad_id, self.config.training.batch_size
        features = FrozenFeatures(self.model, self.strategy, batch_size, pad_id, folder, self.report)
        features.give({split: self.problem.rows(split) for split in ("train", *self.problem.dev_splits)})

    def train(self, first_step: int) -> int:
        """Trains from `first_step` to the end; returns the steps done."""
        training, problem = self.config.training, self.problem
        self.engine = self.engine.with_compilation(
            first_step, self.batches.sample, training.steps_per_loop, self.report
        )
        split = problem.dev_splits[0]
        # A copy, which skips the settings' checks: an epoch need not end at a multiple of steps_per_loop, because a
        # loop of steps ends with it.
        run_config = copy.copy(training)
        run_config.evaluate_every = training.evaluate_every or self._steps_per_epoch

        def batch_key() -> tuple[str, int]:
            return "training.batch_size", training.batch_size

        def evaluate(done: int) -> dict[str, float]:
            answers, figures = self.evaluate.answers(split)
            self._validated = {(split, done): (answers, figures)}
            return {f"eval_{name}": value for name, value in {**figures, **problem.evaluate(split, answers)}.items()}

        def score(figures: Mapping[str, float]) -> float:
            return -figures[f"eval_{problem.main_metric}"]

        columns = [
            Column(name.replace("_", " ").rjust(8), name, _in_per_cent(problem.per_cent))
            for name in problem.metric_names[:_METRICS_SHOWN]
        ]
        budget = self.engine.budget
        with run_context(self.run, self.strategy, training, budget, first_step, batch_key, columns) as context:
            loop = Loop(
                self.engine, self.batches, evaluate, run_config, context, score=score, is_enough=self._is_enough
            )
            loop.run(first_step)
        return loop.done

    def _is_enough(self) -> bool:
        """Whether `patience` validations in a row were no better; decided by the chief, which writes the log."""
        patience = self.config.training.patience
        if not patience:
            return False
        checkpoints, metric = self.engine.checkpoints, self.problem.main_metric
        own = self.is_chief and validations_since_best(checkpoints, self.run.metrics_file, metric) >= patience
        return agreement(self.strategy)(own) > 0

    def write_results(self, done: int, began: float) -> dict[str, Any] | None:
        """Writes the model folder, results.json and pictures of the best validation.

        Args:
            done: the steps done.
            began: when the process started, from `time.perf_counter`.

        Returns: the results; None in processes other than the chief.
        """
        problem = self.problem
        with failing_together(agreement(self.strategy)):
            best_step = self.engine.checkpoints.restore_best(self.report)
            assert best_step is not None
        require_same(self.strategy, self.run.path, best_checkpoint=best_step)
        results: dict[str, Any] = {
            "task": self.config.task,
            "seed": self.config.training.seed,
            "main_metric": problem.main_metric,
            "per_cent": problem.per_cent,
            "steps": done,
            "best_step": best_step,
            "best_epoch": round(best_step / self._steps_per_epoch, 2),
            "lasts": self._length(),
            "splits": {},
            "counts": {},
            "baseline": {},
            "warnings": [],
        }
        with self.engine.averaged_weights():
            confusions = self._measure(results)
            results["seconds"] = round(time.perf_counter() - began, 1)
            return by_chief(self.strategy, lambda: self._write(results, confusions, done))

    def _measure(self, results: dict[str, Any]) -> dict[str, np.ndarray]:
        """Adds the scores of every dev split to the results; returns `{split: confusion matrix}` where there is one."""
        problem, confusions = self.problem, {}
        for split in problem.dev_splits:
            answers, figures = self._validated.get((split, results["best_step"])) or self.evaluate.answers(split)
            if split == problem.dev_splits[0]:
                problem.tune(split, answers)
            results["splits"][split] = {**figures, **problem.evaluate(split, answers)}
            results["counts"][split] = len(answers)
            results["baseline"][split] = self.baseline[split]
            results["warnings"] += problem.remarks(split, answers)
            confusion = problem.confusion(split, answers)
            if confusion is not None:
                results["splits"][split]["confusion"] = confusion.tolist()
                confusions[split] = confusion
        return confusions

    def _write(self, results: dict[str, Any], confusions: Mapping[str, np.ndarray], done: int) -> dict[str, Any]:
        if extras.is_installed("matplotlib"):
            labels = self.problem.head.labels if confusions else ()
            write_run_pictures(self.run, self.config.name, confusions, labels, done)
        else:
            self.report("No pictures were drawn: matplotlib is missing. pip install 'bert-in-keras[plots]'")
        write_model_folder(
            self.run.model,
            self.model,
            self.tokenizer.vocabulary,
            **vars(self.folder.tokenizer),
            head=self.problem.head,
            task=self.problem.described(),
            card=finetuning_card(self.config, self.run.path, results, self.command),
        )
        self.run.write_results(results)
        for line in results["warnings"]:
            self.report(line)
        return results


def _in_per_cent(is_already: bool) -> Callable[[float], str]:
    """Function (score) -> its text in per cent, as in the table of results."""
    return lambda score: f"{score if is_already else 100 * score:.2f}"
