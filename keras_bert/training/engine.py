"""The engine of a run: its model, optimizer, step, budget and checkpoints, made in one function."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf

from keras_bert.config.training import RunConfig
from keras_bert.core.errors import UserError
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.models.kind import kind_of_config, with_article
from keras_bert.training.budget import StepBudget, TimeBudget, make_budget
from keras_bert.training.checkpoints import Checkpoints
from keras_bert.training.compilation import Choice, choose
from keras_bert.training.loss_scale import LossScale
from keras_bert.training.optimizers.base import BertOptimizer
from keras_bert.training.processes import (
    agreement,
    by_chief,
    chief_decides,
    fail_together,
    process_count,
    process_number,
    require_same,
    require_same_start,
)
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.step import Batch, Memory, Step
from keras_bert.training.step_loop import StepLoop, trainer
from keras_bert.training.strategy import checkpoint_device, on_gpus
from keras_bert.training.variable_names import gradient_parts

_log = logging.getLogger(__name__)


def start_average(model: keras.Model, optimizer: BertOptimizer) -> None:
    """Sets the averages to the weights, once these have their initial values."""
    for variable, average in _pairs(model, optimizer):
        average.assign(variable)


@contextlib.contextmanager
def averaged_weights(model: keras.Model, optimizer: BertOptimizer) -> Iterator[None]:
    """A block in which the model's weights are their averages; without averages it changes nothing.

    Weights and averages are swapped, and swapped back afterwards, bit for bit. Save no checkpoint inside.
    """
    _exchange(model, optimizer)
    try:
        yield
    finally:
        _exchange(model, optimizer)


def _exchange(model: keras.Model, optimizer: BertOptimizer) -> None:
    for variable, average in _pairs(model, optimizer):
        value = tf.identity(variable.value)
        variable.assign(average)
        average.assign(value)


def _pairs(model: keras.Model, optimizer: BertOptimizer) -> Iterator[tuple[keras.Variable, keras.Variable]]:
    if optimizer.averages:
        yield from zip(model.trainable_variables, optimizer.averages, strict=True)


# Keras' dtype policy of each `training.precision`; variables are float32 in all of them.
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}


@dataclasses.dataclass(frozen=True)
class Engine:
    """What one process trains with, in pretraining and in fine-tuning.

    Attributes:
        strategy: the run's strategy, in whose scope everything was made.
        model, optimizer: saved in checkpoints, with the clock of a time-limited run and the loss scale of float16.
        budget: says when the run ends and which phase a step belongs to.
        trainer: `step`, or a `StepLoop` of it if one call runs several steps.
        compiled_step: `step` compiled with XLA; None on a TPU, and unless `jit_compile: auto` is still undecided.
        choice: the choice of `jit_compile: auto`; None for other settings.
    """

    strategy: tf.distribute.Strategy
    model: keras.Model
    optimizer: BertOptimizer
    budget: StepBudget | TimeBudget
    step: Step
    trainer: Step | StepLoop
    checkpoints: Checkpoints
    compiled_step: Step | None = None
    choice: Choice | None = None

    def start(self, run: RunFolder, config: Any, begin: Callable[[], None]) -> int:
        """Restores the newest checkpoint, or calls `begin` if there is none; returns the steps done.

        Raises:
            UserError: a checkpoint cannot be read, a finished run has none, or the processes of the run start from
                different states.
        """
        with fail_together(agreement(self.strategy)):
            done = self.checkpoints.restore_newest()
            if not done and run.results():  # Training from nothing would replace its model and its log.
                raise UserError(
                    f"{run.path}: needs a checkpoint to train further. Received: a finished run without any. Copy "
                    f"{run.checkpoints} back, give --fresh to start over in a new folder, or give another --output and "
                    f"--init {shlex.quote(run.path)}."
                )
        self.budget.start()  # At the restored time, where the progress begins; the loop starts the clock anew.
        # Before `begin`: a process that found a checkpoint would not take part in its collectives.
        require_same(self.strategy, run.path, step=done)
        if done:
            _log.info(f"Resuming from step {done}.")
        else:
            begin()
            start_average(self.model, self.optimizer)
        require_same_start(self.strategy, run.path, config, done, self.model, self.optimizer)
        by_chief(self.strategy, lambda: run.bind(config))
        return done

    def with_compilation(self, done: int, sample: Callable[[], tuple[Batch, int]], steps_per_loop: int) -> Engine:
        """The engine with the step that `jit_compile: auto` chooses; itself for other settings. A collective.

        The restored checkpoint's choice counts; without one, both steps are timed.

        Args:
            sample: function () -> (a global batch, how many shapes the run's batches have).
        """
        if self.choice is None or self.compiled_step is None:
            return self
        if self.choice.value.numpy() < 0:
            batch, shapes = sample()
            chosen = choose(
                self.step,
                self.compiled_step,
                batch,
                shapes,
                functools.partial(self.budget.seconds_left, done),
                functools.partial(chief_decides, self.strategy),
                process_count(self.strategy) == 1,
            )
            self.choice.value.assign(int(chosen))
        step = self.compiled_step if self.choice.value.numpy() else self.step
        return dataclasses.replace(self, step=step, trainer=trainer(step, steps_per_loop), compiled_step=None)

    def averaged_weights(self) -> contextlib.AbstractContextManager[None]:
        """A block in which the model has the weights to validate and export: their moving average, if one is kept."""
        return averaged_weights(self.model, self.optimizer)


def make_engine(
    strategy: tf.distribute.Strategy,
    run: RunFolder,
    training: RunConfig,
    steps: int,
    shares: list[float],
    make_model: Callable[[str], keras.Model],
    make_optimizer: Callable[[StepBudget | TimeBudget, keras.Model], BertOptimizer],
    objective: Any,
    clip_norm: float,
    make_memory: Callable[[], Memory] | None = None,
    parallel: int = 1,
    adversarial: float = 0.0,
) -> Engine:
    """A new `Engine`, with random weights from `training.seed`.

    Args:
        run: the run's folder, for the checkpoints.
        steps: length of the run; ignored if `training.minutes` limits it.
        make_model: function (Keras dtype policy) -> the model, which may have untrainable parts.
        make_optimizer: function (budget, model) -> the optimizer.
        objective: the loss; see `Step`.
        make_memory: function () -> what training remembers of earlier batches; None for nothing.
        parallel: how many parts of a slice are computed side by side.
        adversarial: see `Step`.
    """
    on_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
    if on_tpu and training.precision == "float16":
        raise UserError("training.precision: needs bfloat16 or float32 on a TPU. Received: float16.")
    # On a GPU XLA's deterministic sums of embeddings' gradients take forty times as long as all else in a step.
    if not on_gpus(strategy):
        tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(training.seed)
    with strategy.scope():
        model = make_model(POLICIES[training.precision])
        _set_recomputation(model.encoder, training.recompute_every)
        budget = make_budget(training.minutes, steps, shares, strategy)
        optimizer = make_optimizer(budget, model)
        optimizer.build(model.trainable_variables)
        loss_scale = LossScale() if training.precision == "float16" else None
        memory = None if make_memory is None else make_memory()
        is_auto = training.jit_compile == "auto"
        # A TPU compiles whatever it runs. Its checkpoints have the choice too, for devices that continue from them.
        choice = Choice() if is_auto else None

    def make_step(jit_compile: bool) -> Step:
        return Step(
            strategy,
            model,
            objective,
            optimizer,
            clip_norm,
            training.seed,
            jit_compile,
            training.slices,
            loss_scale,
            gradient_parts(model) if training.gradient_norms else None,
            memory,
            parallel,
            adversarial,
        )

    more: dict[str, Any] = {"budget": budget} if training.minutes else {}
    if loss_scale is not None:
        more["loss_scale"] = loss_scale
    if memory is not None:
        more["memory"] = memory
    compiled_step = None
    if choice is not None:
        more["compilation"] = choice
        compiled_step = None if on_tpu else make_step(True)
    step = make_step(training.jit_compile is True)
    if not model.encoder.embeddings.trainable:  # Nor are the blocks then, except for what LoRA adds.
        # A checkpoint reaches the blocks, which are in a list, only through the optimizer, which has no frozen weights.
        more["frozen"] = model.encoder.weights
    checkpoints = Checkpoints(
        run.checkpoints,
        training.keep_checkpoints,
        training.keep_every,
        process_number(strategy) == 0,
        checkpoint_device(strategy),
        agreement(strategy),
        model=model,
        optimizer=optimizer,
        **more,
    )
    return Engine(
        strategy,
        model,
        optimizer,
        budget,
        step,
        trainer(step, training.steps_per_loop),
        checkpoints,
        compiled_step,
        choice,
    )


def _set_recomputation(encoder: BertEncoder, recompute_every: int) -> None:
    blocks = len(encoder.blocks)
    if recompute_every > blocks:
        raise UserError(
            f"training.recompute_every: needs at most the encoder's {blocks} blocks, or 0 to recompute none. "
            f"Received: {recompute_every}."
        )
    if recompute_every and not encoder.recomputes:
        title = with_article(kind_of_config(encoder.config).title)
        raise UserError(f"training.recompute_every: needs 0 for {title}. Received: {recompute_every}.")
    if encoder.trainable:  # A frozen encoder has no backward pass.
        encoder.recompute_every = recompute_every
