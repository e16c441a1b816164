"""A whole fine-tuning run: a BERT and a task → training → the best checkpoint → model folder and results."""

from __future__ import annotations

import copy
import dataclasses
import functools
import logging
import math
import time
from collections.abc import Iterable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_bert.checkpoints.adapter import write_adapter
from keras_bert.checkpoints.huggingface import CONFIG
from keras_bert.checkpoints.model_folder import ModelFolder
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.training import require_warmup
from keras_bert.core import files, imports
from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import read_json
from keras_bert.data.batches.length_batches import LengthBatches, choose_shapes
from keras_bert.models.sizes import encoder_parts, total
from keras_bert.tasks.evaluator import Evaluator
from keras_bert.tasks.finetuning.frozen_features import FrozenFeatures
from keras_bert.tasks.finetuning.initial_weights import add_lora, freeze, set_initial_weights
from keras_bert.tasks.finetuning.pictures import confusion_picture, write_pictures
from keras_bert.tasks.finetuning.shape_budget import affordable_shapes
from keras_bert.tasks.finetuning.teacher import Teacher
from keras_bert.tasks.finetuning.validation import Validation, validations_since_best
from keras_bert.tasks.model_cards import finetuning_card
from keras_bert.tasks.noise import changes_text
from keras_bert.tasks.phased_batches import PhasedBatches
from keras_bert.tasks.problem import Problem
from keras_bert.tasks.run_data import TEACHER, begun_shapes, require_same_data, require_same_model
from keras_bert.text.tokenizers import Tokenizer
from keras_bert.training.accumulation import BatchShape, choose_accumulation
from keras_bert.training.device_integers import distribute_to_steps
from keras_bert.training.engine import make_engine
from keras_bert.training.loop import Loop
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.processes import (
    agreement,
    by_chief,
    chief_decides,
    claim,
    fail_together,
    gather,
    process_count,
    process_number,
    require_same,
)
from keras_bert.training.processor import advise, with_precision
from keras_bert.training.run_context import run_context
from keras_bert.training.run_folder import INIT, RunFolder
from keras_bert.training.run_loggers import add_to_tensorboard
from keras_bert.training.step import Objective
from keras_bert.training.strategy import check_divisible, describe, graphs_as_traced, is_one_cpu

_log = logging.getLogger(__name__)


@dataclasses.dataclass(eq=False)
class Finetuning:
    """One process of one fine-tuning run, from its settings to its model folder.

    Args:
        run: the run's folder, which is claimed here.
        folder: the model to start from.
        command: the command line, for the model card; None if unknown.
        command_started_at: when the command began, from `time.monotonic`, for `training.max_minutes`; None for now.
        callbacks: see `training.callbacks.Callbacks`.
        teacher: the model to learn from; None for none.

    Attributes:
        is_chief: whether this process writes the run's files.
        rows, noise_shares, source, engine, validation, batches: the parts of the run, made by `build`.
    """

    config: FinetuneConfig
    run: RunFolder
    problem: Problem
    folder: ModelFolder
    tokenizer: Tokenizer
    strategy: tf.distribute.Strategy
    command: str | None = None
    command_started_at: float | None = None
    callbacks: Iterable[keras.callbacks.Callback] = ()
    teacher: Teacher | None = None

    def __post_init__(self) -> None:
        run, folder, teacher, strategy = self.run, self.folder, self.teacher, self.strategy
        training = with_precision(self.config.training, run)
        self.config = config = dataclasses.replace(self.config, training=training)
        self.began_at = time.monotonic()
        if self.command_started_at is None:
            self.command_started_at = self.began_at
        self.is_chief = process_number(strategy) == 0
        check_divisible(training.batch_size, strategy, training.slices, "training.batch_size")
        claim(strategy, run, config)
        by_chief(strategy, lambda: require_same_data(run, self.problem))
        if teacher:
            by_chief(strategy, lambda: require_same_model(run, TEACHER, teacher.folder))
        if training.lora_rank:  # `adapter/` adds to these weights, and checkpoints hold them as they were.
            by_chief(strategy, lambda: require_same_model(run, INIT, folder))

    def finetune(self) -> dict[str, Any] | None:
        """Trains, resuming from the newest checkpoint, and writes the model folder and results.json.

        Returns: the results; None in processes other than the chief.
        """
        if chief_decides(self.strategy, self._found_finished):
            return self.run.results() if self.is_chief else None
        with graphs_as_traced(self.strategy):
            self.build()
            done = self.restore()
            if self.config.features.kind:
                self.take_features()
            done = self.train(done)
            return self.write_results(done)

    def _found_finished(self) -> bool:
        finished = self.run.results()
        if not finished or finished.get("lasts") != self._length():
            return False
        _log.info(f"{self.run.path} is finished: {finished['steps']:,} steps. --fresh starts over.")
        return True

    def _length(self) -> dict[str, float]:
        training = self.config.training
        return {key: getattr(training, key) for key in ("epochs", "steps", "minutes")}

    def build(self) -> None:
        """Makes every part of the run."""
        config, training, problem = self.config, self.config.training, self.problem
        _log.info(describe(self.strategy))
        if not self.run.has_begun():
            advise(self.strategy, training)
        problem.forget_tuning()  # Another seed may have used the same problem.
        if not problem.dev_splits:
            raise UserError(
                f"{config.task}: needs dev examples, to choose the best epoch by. Received: none. Give --dev."
            )
        told = len(problem.notes)
        rows, shares = problem.training_rows(training.seed)
        for line in problem.notes[told:]:  # Of another seed's draw.
            _log.info(line)
        if process_count(self.strategy) > 1:  # Each makes the batches itself and keeps its part.
            require_same(self.strategy, self.run.path, training_examples=rows.fingerprint().encode())
        objective: Objective = problem.objective
        if self.teacher:
            rows = self.teacher.taught(rows, training.seed, self.run, self.strategy)
            objective = self.teacher.objective()
        self.rows, self.noise_shares = rows, shares
        # Computed before training, so that a dev split without labels fails now and not at the first validation.
        baseline = {split: problem.baseline(split) for split in problem.dev_splits}
        pad_id = self.tokenizer.vocabulary.pad_id
        affordable = affordable_shapes(rows, config, self.folder.config, self.strategy)
        most = by_chief(self.strategy, lambda: begun_shapes(self.run, affordable))
        widths, sizes = choose_shapes(rows, int(gather(self.strategy, [most or 0]).max()))
        batch = BatchShape(training.batch_size, widths[-1], rows=sizes[-1])
        if rows.targets:
            batch = BatchShape(training.batch_size, widths[-1], predictions=sizes[-1])
        frozen = total(encoder_parts(self.folder.config)) if training.lora_rank else 0
        slices = choose_accumulation(training, self.run, self.strategy, self.folder.config, [batch], frozen)
        training = dataclasses.replace(training, accumulation=slices)
        self.config = config = dataclasses.replace(config, training=training)
        replicas = self.strategy.num_replicas_in_sync
        compared = training.batch_size // (slices * replicas)
        if problem.compares_examples and compared == 1 and sizes[-1] < 3:  # A third text is a hard negative.
            raise UserError(
                "training.batch_size: needs two examples or more in each slice of each replica, because the loss "
                f"compares them. Received: {training.batch_size} in {slices} slice(s) on {replicas} replica(s). Raise "
                "it, or lower training.accumulation."
            )
        if problem.compares_examples and compared < training.batch_size:
            _log.info(
                f"The loss compares only the {compared} of a batch's {training.batch_size} examples that are computed "
                "together: each slice (training.accumulation) of each replica by itself."
            )
        self.source = LengthBatches(rows, training.batch_size, training.seed, pad_id, widths, sizes=sizes)
        _log.info(
            f"{len(rows):,} rows for training in batches of {training.batch_size}, {self.source.batches_per_epoch:,} "
            f"an epoch, {self.source.padding_share:.1%} of their tokens padding."
        )
        for noise, changed in shares.items():
            _log.info(f"Noisy copies of the training examples: {noise}, {changes_text(changed)}.")
        steps_per_epoch = self.source.batches_per_epoch
        steps = training.steps or math.ceil(training.epochs * steps_per_epoch)
        require_warmup(config.optimizer, training, steps)

        def make_model(dtype: str) -> keras.Model:
            model = problem.make_model(self._architecture(), dtype)
            if training.freeze:
                freeze(model, config, self.folder)
            if training.lora_rank:
                add_lora(model, training)
            return model

        self.engine = make_engine(
            self.strategy,
            self.run,
            training,
            steps,
            [1.0],
            make_model,
            lambda budget, model: make_optimizer(config.optimizer, steps, budget.share, model, steps_per_epoch),
            objective,
            config.optimizer.clip_norm,
            adversarial=training.adversarial,
        )
        evaluator = Evaluator(problem, self.engine.model, pad_id, self.strategy, self._examples_at_once)
        self.validation = Validation(problem, evaluator, baseline)
        spread = functools.partial(distribute_to_steps, self.strategy)
        self.batches = PhasedBatches(
            [self.source], self.engine.budget, spread, training.steps_per_loop, is_one_cpu(self.strategy)
        )

    @property
    def _examples_at_once(self) -> int:
        """How many examples the replicas compute at once: a slice, because a whole batch may not fit in memory."""
        return self.config.training.batch_size // self.config.training.slices

    def _architecture(self) -> Any:
        """The architecture of `init`, with the recipe's dropout."""
        rate, architecture = self.config.training.dropout, self.folder.config.for_training()
        if rate is None:
            return architecture
        names = ("hidden_dropout_prob", "attention_probs_dropout_prob", "activation_dropout")  # The last is BART's.
        rates: dict[str, Any] = {name: rate for name in names if hasattr(architecture, name)}
        return dataclasses.replace(architecture, **rates)

    def restore(self) -> int:
        """Restores the newest checkpoint or, without one, sets the initial weights; returns the steps done."""
        return self.engine.start(self.run, self.config, self._begin)

    def _begin(self) -> None:
        with fail_together(agreement(self.strategy)):
            set_initial_weights(self.engine.model, self.config, self.folder, self.problem.head)

    def take_features(self) -> None:
        """Adds the frozen encoder's features to the rows; call it once the weights are restored."""
        folder = self.config.features.folder or files.join(files.parent(self.run.path), "features")
        pad_id, at_once = self.tokenizer.vocabulary.pad_id, self._examples_at_once
        features = FrozenFeatures(self.engine.model, self.strategy, at_once, pad_id, folder)
        features.give({"train": self.rows, **{split: self.problem.rows(split) for split in self.problem.dev_splits}})

    def train(self, first_step: int) -> int:
        """Trains from `first_step` to the end; returns the steps done."""
        training, validation = self.config.training, self.validation
        # A copy, which skips the settings' checks: an epoch need not end at a multiple of steps_per_loop, because a
        # loop of steps ends with it.
        run_config = copy.copy(training)
        run_config.evaluate_every = training.evaluate_every or self.source.batches_per_epoch
        columns, per_loop = validation.columns(), training.steps_per_loop
        charts = {"loss": "loss", **{column.figure: column.figure for column in columns}}
        with run_context(
            self.run,
            self.strategy,
            training,
            first_step,
            lambda: ("training.batch_size", training.batch_size),
            charts,
            columns,
            self.command_started_at,
            self.callbacks,
            self.began_at,
        ) as context:
            self._goodput = context.goodput
            # Also before steps are timed; otherwise this process alone would use their trace for the sample's width.
            self._trace_on_one_cpu()
            self.engine = self.engine.with_compilation(first_step, self.batches.sample, per_loop)
            self._trace_on_one_cpu()
            loop = Loop(
                self.engine,
                self.batches,
                validation.figures,
                run_config,
                context,
                score=validation.checkpoint_score,
                is_enough=self._is_enough,
            )
            loop.run(first_step)
        return loop.done

    def _trace_on_one_cpu(self) -> None:
        if is_one_cpu(self.strategy):
            self.engine.step.trace(self.batches.element_spec)

    def _is_enough(self) -> bool:
        """Whether `patience` validations in a row were no better; decided by the chief, which writes the log."""
        patience = self.config.training.patience
        if not patience:
            return False
        checkpoints, metric = self.engine.checkpoints, self.problem.main_metric
        own = self.is_chief and validations_since_best(checkpoints, self.run.metrics_file, metric) >= patience
        return agreement(self.strategy)(own) > 0

    def write_results(self, done: int) -> dict[str, Any] | None:
        """Writes the model folder, results.json and pictures of the best validation.

        Returns: the results; None in processes other than the chief.
        """
        problem = self.problem
        with fail_together(agreement(self.strategy)):
            best_step = self.engine.checkpoints.restore_best()
            assert best_step is not None
        require_same(self.strategy, self.run.path, best_checkpoint=best_step)
        results: dict[str, Any] = {
            "task": self.config.task,
            "seed": self.config.training.seed,
            "main_metric": problem.main_metric,
            "per_cent": problem.per_cent,
            "steps": done,
            "best_step": best_step,
            "best_epoch": round(best_step / self.source.batches_per_epoch, 2),
            "lasts": self._length(),
            **({"noise": self.noise_shares} if self.noise_shares else {}),
            **({"prepared": self.config.prepare.kind} if self.config.prepare.kind else {}),
        }
        with self.engine.averaged_weights():
            scores, confusions, examples = self.validation.all_splits(best_step)
            seconds = round(time.monotonic() - self.began_at, 1)
            results |= {**scores, "seconds": seconds, "goodput": self._goodput.summary()}
            return by_chief(self.strategy, lambda: self._write(results, confusions, examples))

    def _write(
        self,
        results: dict[str, Any],
        confusions: Mapping[str, np.ndarray],
        examples: Mapping[str, Mapping[str, np.ndarray]],
    ) -> dict[str, Any]:
        """Writes the run's output, results.json last, because it marks the run as finished; returns the results.

        Args:
            confusions: `{split: confusion matrix}` where the answers are classes.
            examples: `{split: Problem.by_example}`.
        """
        run, training, problem, model = self.run, self.config.training, self.problem, self.engine.model
        pictures = {}
        if imports.is_installed("matplotlib"):
            labels = problem.head.labels if confusions else ()
            pictures = {
                f"confusion_{split}": confusion_picture(found, labels, split) for split, found in confusions.items()
            }
            write_pictures(run, pictures)
        elif confusions:
            _log.info("No pictures were drawn: matplotlib is missing. Install it with: pip install matplotlib")
        if "tensorboard" in training.log_to:
            metric = results["main_metric"]
            best = {f"best/{split}_{metric}": figures[metric] for split, figures in results["splits"].items()}
            add_to_tensorboard(run, results["best_step"], pictures, best)
        write_model_folder(
            run.model,
            model,
            self.tokenizer.vocabulary,
            **vars(self.folder.tokenizer),
            head=problem.head,
            task=problem.task_record(),
            card=finetuning_card(self.config, run.path, results, self.command),
        )
        if training.lora_rank:
            fields = read_json(files.join(run.model, CONFIG))
            write_adapter(run.adapter, model, self.folder.name, self.folder.path, fields)
        run.write_examples(examples)
        run.write_results(results)
        for line in results["warnings"]:
            _log.info(line)
        return results
