"""The one training loop."""

import contextlib
import logging
import math
import operator
import time
from collections.abc import Callable, Generator, Iterator, Sequence

import tensorflow as tf

from keras_bert.config.finetuning import FinetuneTrainingConfig
from keras_bert.config.training import TrainingConfig
from keras_bert.core.errors import RunStopped, UserError
from keras_bert.core.program import same_command
from keras_bert.training.engine import Engine
from keras_bert.training.metrics import MetricSums, Throughput, each_step
from keras_bert.training.rollbacks import Divergence, DivergenceWatch, SkippedBatches, batches_skipped_by, go_back
from keras_bert.training.run_context import RunContext
from keras_bert.training.step import Batch
from keras_bert.training.step_loop import LoopBatches

_log = logging.getLogger(__name__)

_OF_FLOAT16 = ("loss_scale", "skipped_steps")  # See `LossScale.apply`.


class Loop:
    """Trains, logs, validates and saves, in pretraining and in every task.

    Args:
        engine: the model, its trainer, budget and checkpoints, restored. The trainer trains on what `batches` yields.
        batches: function (first step, what to leave out) -> generator of the global batches from that step on, or of
            `LoopBatches` for a `StepLoop`. Arithmetic finds the start, so a resumed run sees the batches it would have
            seen.
        evaluate: function (steps done) -> validation figures.
        run_config: its `log_every`, `evaluate_every`, `checkpoint_every` and `keep_every`, all in steps, `rollbacks`
            and `loss_band` are used.
        context: log, progress, stop requests and the checkpoint clock.
        derive: function (steps done, figures) -> further figures computed from the logged ones.
        score: function (validation figures) -> the checkpoint's score; lower is better.
        is_enough: whether the run ends before its budget; called at the start and after every validation.

    Attributes:
        done: steps done so far.
    """

    def __init__(
        self,
        engine: Engine,
        batches: Callable[[int, Sequence[SkippedBatches]], Generator[Batch | LoopBatches, None, None]],
        evaluate: Callable[[int], dict[str, float]],
        run_config: TrainingConfig | FinetuneTrainingConfig,
        context: RunContext,
        derive: Callable[[int, dict[str, float]], dict[str, float]] = lambda step, figures: {},
        score: Callable[[dict[str, float]], float] = operator.itemgetter("eval_loss"),
        is_enough: Callable[[], bool] = lambda: False,
    ):
        self._engine = engine
        self.step, self.budget, self.checkpoints = engine.trainer, engine.budget, engine.checkpoints
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
            UserError: a divergence (see `DivergenceWatch`) after the last of `rollbacks`, or a checkpoint cannot be
                written.
        """
        self.context.progress.start(self.budget.share_done(first_step))
        self.context.goodput.begin()
        if self.context.callbacks:
            self.context.callbacks.begin(self._engine.model, self.budget.steps, self.run_config.evaluate_every)
        while True:
            watch = DivergenceWatch(self.run_config, self.checkpoints.watch)
            if watch.rollbacks:
                self.context.log.rewind(first_step, watch.rollbacks)
            batches = self.batches(first_step, batches_skipped_by(watch.rollbacks))
            try:
                # Closed here: their thread must be done before new batches are made, and must not be the one that
                # collects them as garbage.
                with contextlib.closing(batches):
                    evaluation = self._train(first_step, batches, watch)
                self.context.callbacks.end()
                return evaluation
            except Divergence as divergence:
                first_step = self._go_back(divergence, watch)
                self.context.goodput.rewind(first_step)

    def _train(
        self, first_step: int, batches: Iterator[Batch | LoopBatches], watch: DivergenceWatch
    ) -> dict[str, float]:
        run_config = self.run_config
        self.done = done = first_step
        self.budget.start()
        phase = 0
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
            phase = self.budget.phase(done) or phase
            steps = result.get("steps", 1)
            self.done = done = done + steps
            self.context.callbacks.step(done)
            is_over = self.budget.advance(done) or self.context.callbacks.stop
            self.context.progress.advance(done, self.budget.share_done(done))
            stop_reason, score = self.context.stop.reason(), None
            evaluates = done % run_config.evaluate_every == 0 or is_over
            log_every = run_config.log_every
            logs = evaluates or (done % log_every == 0 if log_every else self.budget.is_line(done, steps))
            every, kept_every = run_config.checkpoint_every, run_config.keep_every
            saves = done % every == 0 or kept_every and done % kept_every == 0 or is_over or stop_reason
            # The order matters: `is_due` is an all-reduce, and a run hangs unless all processes call it equally often.
            # Only conditions that are the same in every process may short-circuit it: `done` is, and `is_over` and
            # `stop_reason` were agreed on above. It comes last so that most steps skip it. The same holds for `is_best`
            # below.
            saves = saves or logs and self.context.clock.is_due()
            if logs or saves:
                watch.check_steps(done, sums, result)
            if logs:
                figures, last = sums.take(), each_step(result)[-1]
                watch.check_loss(done, figures["loss"], phase, result)
                figures["learning_rate"] = float(last["learning_rate"])
                figures.update({key: float(value) for key, value in last.items() if key.startswith("grad_norm")})
                figures.update({name: float(last[name]) for name in _OF_FLOAT16 if name in last})
                figures.update(throughput.take())
                self._record(done, {**figures, **self.derive(done, figures)})
            if evaluates or saves:
                with throughput.paused():
                    are_finite = self.checkpoints.are_finite()
                watch.check_outcome(done, are_finite, "a weight or the optimizer's state", result)
            if evaluates:
                started_at = time.monotonic()
                with throughput.paused():
                    evaluation = self._evaluation(done)
                seconds = time.monotonic() - started_at
                watch.check_outcome(done, math.isfinite(evaluation["eval_loss"]), "the validation's loss", result)
                self._record(done, {**evaluation, "eval_seconds": seconds})
                score = self.score(evaluation)
                is_over = is_over or self.is_enough() or self.context.callbacks.stop
            if saves or is_over or self.checkpoints.is_best(score):
                with throughput.paused(), self.context.goodput.checkpointing():
                    self.context.log.flush()
                    self.checkpoints.save(done, score, sums.totals(), watch.state())
                self.context.clock.saved()
            if stop_reason and not is_over:
                share = self.budget.share_done(done)
                raise RunStopped(
                    f"Stopped by {stop_reason} after step {done:,}, {share:.1%} of the run, with a checkpoint. "
                    f"Run {same_command()} to resume from there.",
                    self.context.stop.status,
                )
        return evaluation or self._evaluation(done)

    def _evaluation(self, done: int) -> dict[str, float]:
        with self._engine.averaged_weights():
            return self.evaluate(done)

    def _record(self, done: int, figures: dict[str, float]) -> None:
        figures = {**figures, **self.context.goodput.line(done, figures)}
        self.context.log.write(done, figures)
        self.context.progress.figures(done, figures)
        self.context.callbacks.figures(figures)

    def _go_back(self, divergence: Divergence, watch: DivergenceWatch) -> int:
        """Restores the last good checkpoint and returns its step.

        Raises:
            UserError: there is none, or the run has gone back as often as it may.
        """
        step, most = None, self.run_config.rollbacks
        if watch.times < most:
            step = go_back(self._engine, divergence, watch.times + 1, watch.rollbacks)
        if step is None:
            saved = [step for step in self.checkpoints.steps() if step <= divergence.good]
            good = f"The last good checkpoint is at step {saved[-1]}." if saved else "No checkpoint is from before it."
            given_up = f" The run has gone back {watch.times} times (training.rollbacks)." if watch.times else ""
            raise UserError(
                f"{divergence} {good}{given_up} Lower optimizer.learning_rate, or raise optimizer.warmup_steps, and "
                "start over with --fresh."
            )
        self.context.clock.saved()
        _log.info(
            f"{divergence} Resuming from the checkpoint of step {step}, without the batches in between "
            f"(rollback {watch.times + 1} of {most})."
        )
        return step
