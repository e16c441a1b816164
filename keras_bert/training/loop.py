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
        settings: a `TrainingConfig`.
        checkpoints: `Checkpoints` of the model and the optimiser.
        log: a `MetricsLog`.
        progress: a `Progress`.
        stop: a `StopRequest`.
    """

    def __init__(self, step, batches, evaluate, settings, checkpoints, log, progress, stop):
        self.step = step
        self.batches = batches
        self.evaluate = evaluate
        self.settings = settings
        self.checkpoints = checkpoints
        self.log = log
        self.progress = progress
        self.stop = stop

    def run(self, first_step):
        """Trains from `first_step` (steps done) to `settings.steps`; returns the last validation figures.

        Raises:
            RunStopped: on request, after a checkpoint.
            UserError: the loss is no number any more, or a checkpoint cannot be written.
        """
        settings = self.settings
        batches = self.batches(first_step)
        sums, throughput, evaluation = MetricSums(self.step.objective.terms), Throughput(), None
        for done in range(first_step + 1, settings.steps + 1):
            with throughput.waiting():
                batch = next(batches)
            result = self.step.train(batch, tf.constant(done - 1, tf.int64))
            sums.add(result)
            throughput.add(result)
            self.progress.advance()
            last, stop_reason, score = done == settings.steps, self.stop.reason(), None
            logs = done % settings.log_every == 0 or last
            saves = done % settings.checkpoint_every == 0 or last or stop_reason
            if logs or saves:
                self._refuse_no_number(sums, done, result)
            if logs:
                figures = sums.take()
                figures["learning_rate"] = float(result["learning_rate"])
                figures["grad_norm"] = float(result["grad_norm"])
                self._record(done, {**figures, **throughput.take()})
            if done % settings.evaluate_every == 0 or last:
                with throughput.paused():
                    evaluation = self.evaluate(done)
                self._record(done, evaluation)
                score = evaluation["eval_loss"]
            if saves or self.checkpoints.is_best(score):
                with throughput.paused():
                    self.checkpoints.save(done, score)
            if stop_reason and not last:
                raise RunStopped(
                    f"Stopped by {stop_reason} after step {done} of {settings.steps}, with a checkpoint. "
                    "The same command goes on from there.",
                    self.stop.status,
                )
        return evaluation

    def _record(self, done, figures):
        self.log.write(done, figures)
        shown = "  ".join(f"{name} {value:.4g}" for name, value in figures.items())
        self.progress.line(f"step {done}/{self.settings.steps}  {shown}")

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
