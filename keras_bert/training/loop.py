"""The one training loop."""

import tensorflow as tf

from keras_bert.errors import RunStopped, UserError
from keras_bert.training.metrics import MetricSums, Throughput


class Loop:
    """Steps, looks, saves; the same for pretraining and for every task.

    Args:
        step: a `Step` with an optimiser.
        batches: function `(first_step) -> iterator of global batches` from that step on. It starts anywhere
            by arithmetic, so a run that goes on sees what it would have seen.
        evaluate: function `(step) -> {name: number}` of validation figures; `eval_loss` is the score of a checkpoint.
        budget: a `StepBudget` or `TimeBudget`, which says when the run is over.
        settings: a `TrainingConfig`.
        checkpoints: `Checkpoints` of the model and the optimiser.
        log: a `MetricsLog`.
        progress: a `Progress`.
        stop: a `StopRequest`.
        derive: function `(step, figures) -> {name: number}`, more figures that follow from the logged ones.

    Attributes:
        done: steps done so far.
    """

    def __init__(self, step, batches, evaluate, budget, settings, checkpoints, log, progress, stop, derive=None):
        self.step = step
        self.batches = batches
        self.evaluate = evaluate
        self.budget = budget
        self.settings = settings
        self.checkpoints = checkpoints
        self.log = log
        self.progress = progress
        self.stop = stop
        self.derive = derive or (lambda step, figures: {})
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
        is_over = self.budget.phase(done) is None
        while not is_over:
            with throughput.waiting():
                batch = next(batches)
            result = self.step.train(batch, tf.constant(done, tf.int64))
            sums.add(result)
            throughput.add(result)
            self.done = done = done + 1
            is_over = self.budget.advance(done)
            self.progress.advance(done, self.budget.share_done(done))
            stop_reason, score = self.stop.reason(), None
            logs = done % settings.log_every == 0 or is_over
            saves = done % settings.checkpoint_every == 0 or is_over or stop_reason
            if logs or saves:
                self._refuse_no_number(sums, done, result)
            if logs:
                figures = sums.take()
                figures["learning_rate"] = float(result["learning_rate"])
                figures["grad_norm"] = float(result["grad_norm"])
                figures.update(throughput.take())
                self._record(done, {**figures, **self.derive(done, figures)})
            if done % settings.evaluate_every == 0 or is_over:
                with throughput.paused():
                    evaluation = self.evaluate(done)
                self._record(done, evaluation)
                score = evaluation["eval_loss"]
            if saves or self.checkpoints.is_best(score):
                with throughput.paused():
                    self.checkpoints.save(done, score, sums.totals())
            if stop_reason and not is_over:
                share = self.budget.share_done(done)
                raise RunStopped(
                    f"Stopped by {stop_reason} after step {done:,}, {share:.1%} of the run, with a checkpoint. "
                    "The same command goes on from there.",
                    self.stop.status,
                )
        return evaluation or self.evaluate(done)

    def _record(self, done, figures):
        self.log.write(done, figures)
        self.progress.figures(done, figures)

    def _refuse_no_number(self, sums, done, result):
        """Stops before weights that are no numbers any more get into a checkpoint."""
        index = sums.first_not_finite()
        if index is None:
            return
        step = done - len(sums) + 1 + index
        saved = self.checkpoints.steps()
        good = f"The last good checkpoint is that of step {saved[-1]}." if saved else "There is no checkpoint yet."
        raise UserError(
            f"Step {step}: the loss or the gradient is no finite number any more, at a learning rate of about "
            f"{float(result['learning_rate']):.3g}. {good} Lower optimizer.learning_rate, or raise "
            "optimizer.warmup_steps, and start over with --fresh."
        )
