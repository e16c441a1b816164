"""The one training loop."""

import tensorflow as tf

from keras_bert.training.metrics import MetricSums, Throughput


class Loop:
    """Steps, looks, saves; the same for pretraining and for every task.

    Args:
        step: a `Step` with an optimiser.
        batches: function `(first_step) -> iterator of global batches` from that step on. It starts anywhere
            by arithmetic, so a run that goes on sees what it would have seen.
        evaluate: function `(step) -> {name: number}` of validation figures.
        settings: a `TrainingConfig`.
        checkpoints: `Checkpoints` of the model and the optimiser.
        log: a `MetricsLog`.
        progress: a `Progress`.
    """

    def __init__(self, step, batches, evaluate, settings, checkpoints, log, progress):
        self.step = step
        self.batches = batches
        self.evaluate = evaluate
        self.settings = settings
        self.checkpoints = checkpoints
        self.log = log
        self.progress = progress

    def run(self, first_step):
        """Trains from `first_step` (steps done) to `settings.steps`; returns the last validation figures."""
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
            last = done == settings.steps
            if done % settings.log_every == 0 or last:
                figures = sums.take()
                figures["learning_rate"] = float(result["learning_rate"])
                figures["grad_norm"] = float(result["grad_norm"])
                self._record(done, {**figures, **throughput.take()})
            if done % settings.evaluate_every == 0 or last:
                with throughput.paused():
                    evaluation = self.evaluate(done)
                self._record(done, evaluation)
            if done % settings.checkpoint_every == 0 or last:
                with throughput.paused():
                    self.checkpoints.save(done)
        return evaluation

    def _record(self, done, figures):
        self.log.write(done, figures)
        shown = "  ".join(f"{name} {value:.4g}" for name, value in figures.items())
        self.progress.line(f"step {done}/{self.settings.steps}  {shown}")
