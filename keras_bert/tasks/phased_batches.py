"""The batches of a run whose phases differ in length and batch size."""

import concurrent.futures
from typing import NamedTuple

from keras_bert.training.step_loop import taking


class _Visit(NamedTuple):
    """A stretch of one epoch: so many batches from `first_batch` on."""

    phase: int
    epoch: int
    first_batch: int
    batches: int


class PhasedBatches:
    """`batch = f(step)` over phases and epochs.

    With `steps_per_loop` above 1 it is `LoopBatches` of so many steps. A loop ends at the multiples of that number, and
    where an epoch or a phase does, for each of these has an iterator of its own.

    Args:
        sources: one `ShardBatches`, `TextBatches` or `LengthBatches` a phase.
        budget: a `StepBudget` or `TimeBudget`, which knows the phase of every step.
        distribute: function that spreads a `tf.data.Dataset` over the replicas.
        steps_per_loop: steps of one call.
    """

    def __init__(self, sources, budget, distribute, steps_per_loop=1):
        self._sources = sources
        self._budget = budget
        self._distribute = distribute
        self._steps_per_loop = steps_per_loop

    def __call__(self, first_step):
        """Yields the batches from the step numbered `first_step` to the last, starting by arithmetic."""
        # The next epoch is planned, and its first batches are made, while this one trains.
        with concurrent.futures.ThreadPoolExecutor(max_workers=1) as ahead:
            step, visit, finished = first_step, self._visit(first_step), []
            opened = ahead.submit(self._open, visit, finished)
            while visit:
                take = opened.result()
                expected = self._visit(step + visit.batches)
                # Dropping a finished tf.data iterator takes seconds, so the other thread holds the last reference.
                opened, finished = ahead.submit(self._open, expected, finished), [take]
                end = step + visit.batches
                # By the clock a phase ends when its time is over.
                while step < end and self._budget.phase(step) == visit.phase:
                    count = min(end - step, self._steps_per_loop - step % self._steps_per_loop)
                    yield take(count)
                    step += count
                del take
                self._sources[visit.phase].remove_epoch(visit.epoch)
                visit = self._visit(step)
                if visit != expected:
                    finished.append(opened.result())
                    opened, finished = ahead.submit(self._open, visit, finished), []
                    self._sources[expected.phase].remove_epoch(expected.epoch)

    def _visit(self, step):
        """What is read from the step numbered `step` on, to the end of the epoch or the phase; None after the last."""
        phase = self._budget.phase(step)
        if phase is None:
            return None
        start, end = self._budget.bounds(phase)
        batches_per_epoch = self._sources[phase].batches_per_epoch
        epoch, first_batch = divmod(step - start, batches_per_epoch)
        count = batches_per_epoch - first_batch
        return _Visit(phase, epoch, first_batch, count if end is None else min(count, end - step))

    def _open(self, visit, finished):
        """Function (count) -> what is yielded for that many steps of a visit, None without one; clears `finished`."""
        take = None
        if visit is not None:
            source = self._sources[visit.phase]
            dataset = source.epoch(visit.epoch, visit.first_batch)
            take = taking(iter(self._distribute(dataset)), dataset, source.widths, self._steps_per_loop)
        finished.clear()
        return take
