"""The one training loop."""

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from keras_bert.config.finetuning import FinetuneTrainingConfig
from keras_bert.config.training import TrainingConfig
from keras_bert.errors import RunStopped, UserError
from keras_bert.training.engine import Engine
from keras_bert.training.metrics import MetricSums, Throughput, each_step
from keras_bert.training.run_context import RunContext
from keras_bert.training.step import Batch
from keras_bert.training.step_loop import LoopBatches

_OF_FLOAT16 = ("loss_scale", "skipped_steps")  # See `LossScale.apply`.


class Loop:
    """Trains, logs, validates and saves; the same for pretraining and for every task.

    Args:
        engine: the model, its trainer, budget and checkpoints, restored. The trainer trains on what `batches` yields.
        batches: function (first step) -> iterator over the global batches from that step on, or over `LoopBatches` for
            a `StepLoop`. The start is found by arithmetic, so a resumed run sees the batches it would have seen.
        evaluate: function (steps done) -> validation figures.
        run_config: `log_every`, `evaluate_every` and `checkpoint_every` are used, all in steps.
        context: log, progress, stop requests and the checkpoint clock.
        derive: function (steps done, figures) -> further figures computed from the logged ones.
        score: function (validation figures) -> the checkpoint's score; lower is better.
        is_enough: whether the run ends before its budget; called at the start and after every validation.

    Attributes:
        done: steps done so far.
    """

    done: int

    def __init__(
        self,
        engine: Engine,
        batches: Callable[[int], Iterator[Batch | LoopBatches]],
        evaluate: Callable[[int], dict[str, float]],
        run_config: TrainingConfig | FinetuneTrainingConfig,
        context: RunContext,
        derive: Callable[[int, dict[str, float]], dict[str, float]] = lambda step, figures: {},
        score: Callable[[dict[str, float]], float] = operator.itemgetter("eval_loss"),
        is_enough: Callable[[], bool] = lambda: False,
    ):
        self.step, self.budget, self.checkpoints = engine.trainer, engine.budget, engine.checkpoints
        self._averaged_weights = engine.averaged_weights
        self.batches = batches
        self.evaluate = evaluate
        self.run_config = run_config
        self.context = context
        self.derive = derive
        self.score = score
        self.is_enough = is_enough
        self.done = 0

    def run(self, first_step: int) -> dict[str, float]:
        """Trains from `first_step` (steps done) to the end of the budget; returns the last validation figures.

        Raises:
            RunStopped: on request, after saving a checkpoint.
            UserError: the loss is no longer finite, or a checkpoint cannot be written.
        """
        run_config = self.run_config
        self.done = done = first_step
        self.budget.start()
        batches = self.batches(first_step)
        sums = MetricSums(self.step.objective.terms, self.checkpoints.unlogged)
        throughput, evaluation = Throughput(), None
        # A run that ended early may have been killed before it wrote its results.
        is_over = self.budget.phase(done) is None or self.is_enough()
        while not is_over:
            with throughput.waiting():
                batch = next(batches)
            # A `StepLoop` comes with `LoopBatches`.
            result = self.step.train(batch, tf.constant(done, tf.int64))  # type: ignore[arg-type]
            del batch  # Dropping the last reference to an iterator in `LoopBatches` takes seconds; see `PhasedBatches`.
            sums.add(result)
            throughput.add(result)
            self.done = done = done + result.get("steps", 1)
            is_over = self.budget.advance(done)
            self.context.progress.advance(done, self.budget.share_done(done))
            stop_reason, score = self.context.stop.reason(), None
            evaluates = done % run_config.evaluate_every == 0 or is_over
            logs = done % run_config.log_every == 0 or evaluates
            saves = done % run_config.checkpoint_every == 0 or is_over or stop_reason
            # The order matters: `is_due` is an all-reduce, and a run hangs unless all processes call it equally often.
            # Only conditions that are the same in every process may short-circuit it: `done` is, and `is_over` and
            # `stop_reason` were agreed on above. It comes last so that most steps skip it. The same holds for `is_best`
            # below.
            saves = saves or logs and self.context.clock.is_due()
            if logs or saves:
                self._refuse_not_finite(sums, done, result)
            if logs:
                figures, last = sums.take(), each_step(result)[-1]
                figures["learning_rate"] = float(last["learning_rate"])
                figures.update({key: float(value) for key, value in last.items() if key.startswith("grad_norm")})
                figures.update({name: float(last[name]) for name in _OF_FLOAT16 if name in last})
                figures.update(throughput.take())
                self._record(done, {**figures, **self.derive(done, figures)})
            if evaluates:
                with throughput.paused():
                    evaluation = self._evaluation(done)
                self._record(done, evaluation)
                score = self.score(evaluation)
                is_over = is_over or self.is_enough()
            if saves or is_over or self.checkpoints.is_best(score):
                with throughput.paused():
                    self.context.log.flush()
                    self.checkpoints.save(done, score, sums.totals())
                self.context.clock.saved()
            if stop_reason and not is_over:
                share = self.budget.share_done(done)
                raise RunStopped(
                    f"Stopped by {stop_reason} after step {done:,}, {share:.1%} of the run, with a checkpoint. "
                    "The same command resumes from there.",
                    self.context.stop.status,
                )
        return evaluation or self._evaluation(done)

    def _evaluation(self, done: int) -> dict[str, float]:
        with self._averaged_weights():
            return self.evaluate(done)

    def _record(self, done: int, figures: dict[str, float]) -> None:
        self.context.log.write(done, figures)
        self.context.progress.figures(done, figures)

    def _refuse_not_finite(self, sums: MetricSums, done: int, result: Mapping[str, Any]) -> None:
        """Stops before weights that are no longer finite get into a checkpoint."""
        index = sums.first_not_finite()
        if index is None:
            return
        step = done - len(sums) + 1 + index
        last = each_step(result)[-1]
        rate = float(last["learning_rate"])
        scaled = " and the lowest loss scale" if "loss_scale" in last else ""
        saved = self.checkpoints.steps()
        good = f"The last good checkpoint is at step {saved[-1]}." if saved else "There is no checkpoint yet."
        raise UserError(
            f"Step {step}: the loss or the gradient is no longer finite, at a learning rate of about "
            f"{rate:.3g}{scaled}. {good} Lower optimizer.learning_rate, or raise "
            "optimizer.warmup_steps, and start over with --fresh."
        )
