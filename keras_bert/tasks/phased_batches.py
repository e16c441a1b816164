"""The batches of a run whose phases differ in length and batch size."""

import concurrent.futures
import itertools
from typing import NamedTuple


class _Visit(NamedTuple):
    """A stretch of one epoch: `count` batches from `first_batch` on."""

    phase: int
    epoch: int
    first_batch: int
    count: int


class PhasedBatches:
    """`batch = f(step)` over phases and epochs.

    Args:
        readers: one `ShardReader` or `TextReader` a phase.
        budget: a `StepBudget` or `TimeBudget`, which knows the phase of every step.
        distribute: function that spreads a `tf.data.Dataset` over the replicas.
    """

    def __init__(self, readers, budget, distribute):
        self._readers = readers
        self._budget = budget
        self._distribute = distribute

    def __call__(self, first_step):
        """Yields the batches from the step numbered `first_step` to the last, starting by arithmetic."""
        # The next epoch is planned, and its first batches are made, while this one trains.
        with concurrent.futures.ThreadPoolExecutor(max_workers=1) as ahead:
            step, visit, finished = first_step, self._visit(first_step), []
            opened = ahead.submit(self._open, visit, finished)
            while visit:
                batches = opened.result()
                expected = self._visit(step + visit.count)
                # Dropping a finished tf.data iterator takes seconds, so the other thread holds the last reference.
                opened, finished = ahead.submit(self._open, expected, finished), [batches]
                for batch in itertools.islice(batches, visit.count):
                    yield batch
                    step += 1
                    # By the clock a phase ends when its time is over.
                    if self._budget.phase(step) != visit.phase:
                        break
                del batches
                self._readers[visit.phase].remove_epoch(visit.epoch)
                visit = self._visit(step)
                if visit != expected:
                    finished.append(opened.result())
                    opened, finished = ahead.submit(self._open, visit, finished), []
                    self._readers[expected.phase].remove_epoch(expected.epoch)

    def _visit(self, step):
        """What is read from the step numbered `step` on, to the end of the epoch or the phase; None after the last."""
        phase = self._budget.phase(step)
        if phase is None:
            return None
        start, end = self._budget.bounds(phase)
        batches_per_epoch = self._readers[phase].batches_per_epoch
        epoch, first_batch = divmod(step - start, batches_per_epoch)
        count = batches_per_epoch - first_batch
        return _Visit(phase, epoch, first_batch, count if end is None else min(count, end - step))

    def _open(self, visit, finished):
        """The iterator of a visit, None for none; then lets the finished ones go."""
        opened = None
        if visit is not None:
            reader = self._readers[visit.phase]
            opened = iter(self._distribute(reader.epoch(visit.epoch, visit.first_batch)))
        finished.clear()
        return opened
