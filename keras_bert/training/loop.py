"""The one training loop."""

import operator

import tensorflow as tf

from keras_bert.errors import RunStopped, UserError
from keras_bert.training.metrics import MetricSums, Throughput, each_step


class Loop:
    """Steps, looks, saves; the same for pretraining and for every task.

    Args:
        engine: what trains, restored.
        batches: function `(first_step) -> iterator` from that step on, of global batches, or of `LoopBatches` for a
            `StepLoop`. It starts anywhere by arithmetic, so a run that goes on sees what it would have seen.
        evaluate: function `(step) -> {name: number}` of validation figures.
        settings: has `log_every`, `evaluate_every` and `checkpoint_every`, in steps; see `TrainingConfig`.
        surroundings: the run's `Surroundings`: log, progress, requests to stop, the clock of checkpoints.
        derive: function `(step, figures) -> {name: number}`, more figures that follow from the logged ones.
        score: function `(validation figures) -> number`, lower is better: that of a checkpoint.
        is_enough: function `() -> bool`, asked at the start and after every validation, whether the run ends before
            its budget.

    Attributes:
        done: steps done so far.
    """

    def __init__(
        self, engine, batches, evaluate, settings, surroundings,
        derive=lambda step, figures: {}, score=operator.itemgetter("eval_loss"), is_enough=lambda: False,
    ):  # fmt: skip
        self.step, self.budget, self.checkpoints = engine.trainer, engine.budget, engine.checkpoints
        self.batches = batches
        self.evaluate = evaluate
        self.settings = settings
        self.surroundings = surroundings
        self.derive = derive
        self.score = score
        self.is_enough = is_enough
        self.done = 0

    def run(self, first_step):
        """Trains from `first_step` (steps done) to the end of the budget; returns the last validation figures.

        Raises:
            RunStopped: on request, after a checkpoint.
            UserError: the loss is no number any more, or a checkpoint cannot be written.
        """
        settings = self.settings
        self.done = done = first_step
        self.budget.start()
        batches = self.batches(first_step)
        sums = MetricSums(self.step.objective.terms, self.checkpoints.unlogged)
        throughput, evaluation = Throughput(), None
        # A run that was enough may have been killed before its results were written.
        is_over = self.budget.phase(done) is None or self.is_enough()
        while not is_over:
            with throughput.waiting():
                batch = next(batches)
            result = self.step.train(batch, tf.constant(done, tf.int64))
            del batch  # Letting go of the iterator in a `LoopBatches` takes seconds; see `PhasedBatches`.
            sums.add(result)
            throughput.add(result)
            self.done = done = done + result.get("steps", 1)
            is_over = self.budget.advance(done)
            self.surroundings.progress.advance(done, self.budget.share_done(done))
            stop_reason, score = self.surroundings.stop.reason(), None
            evaluates = done % settings.evaluate_every == 0 or is_over
            logs = done % settings.log_every == 0 or evaluates
            saves = done % settings.checkpoint_every == 0 or is_over or stop_reason
            saves = saves or logs and self.surroundings.clock.is_due()
            if logs or saves:
                self._refuse_no_number(sums, done, result)
            if logs:
                figures, last = sums.take(), each_step(result)[-1]
                figures["learning_rate"] = float(last["learning_rate"])
                figures["grad_norm"] = float(last["grad_norm"])
                figures.update(throughput.take())
                self._record(done, {**figures, **self.derive(done, figures)})
            if evaluates:
                with throughput.paused():
                    evaluation = self.evaluate(done)
                self._record(done, evaluation)
                score = self.score(evaluation)
                is_over = is_over or self.is_enough()
            if saves or is_over or self.checkpoints.is_best(score):
                with throughput.paused():
                    self.surroundings.log.flush()
                    self.checkpoints.save(done, score, sums.totals())
                self.surroundings.clock.saved()
            if stop_reason and not is_over:
                share = self.budget.share_done(done)
                raise RunStopped(
                    f"Stopped by {stop_reason} after step {done:,}, {share:.1%} of the run, with a checkpoint. "
                    "The same command goes on from there.",
                    self.surroundings.stop.status,
                )
        return evaluation or self.evaluate(done)

    def _record(self, done, figures):
        self.surroundings.log.write(done, figures)
        self.surroundings.progress.figures(done, figures)

    def _refuse_no_number(self, sums, done, result):
        """Stops before weights that are no numbers any more get into a checkpoint."""
        index = sums.first_not_finite()
        if index is None:
            return
        step = done - len(sums) + 1 + index
        rate = float(each_step(result)[-1]["learning_rate"])
        saved = self.checkpoints.steps()
        good = f"The last good checkpoint is that of step {saved[-1]}." if saved else "There is no checkpoint yet."
        raise UserError(
            f"Step {step}: the loss or the gradient is no finite number any more, at a learning rate of about "
            f"{rate:.3g}. {good} Lower optimizer.learning_rate, or raise "
            "optimizer.warmup_steps, and start over with --fresh."
        )
