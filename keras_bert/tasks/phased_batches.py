"""The batches of a run whose phases differ in length and batch size."""

import concurrent.futures
import itertools


class PhasedBatches:
    """`batch = f(step)` over phases and epochs.

    Args:
        readers: one `ShardReader` or `TextReader` a phase.
        shares: each phase's share of all steps, summing to 1.
        steps: steps of the whole run.
        distribute: function that spreads a `tf.data.Dataset` over the replicas.
    """

    def __init__(self, readers, shares, steps, distribute):
        self._readers = readers
        self._distribute = distribute
        ends = [round(steps * sum(shares[: index + 1])) for index in range(len(shares))]
        self._bounds = list(zip([0, *ends[:-1]], ends))

    def phase(self, step):
        """The index of the phase in which the step numbered `step` (from 0) falls."""
        return next(index for index, (_, end) in enumerate(self._bounds) if step < end)

    def __call__(self, first_step):
        """Yields the batches from the step numbered `first_step` to the last, starting by arithmetic."""
        visits = self._visits(first_step)
        # The next epoch is planned, and its first batches are made, while this one trains.
        with concurrent.futures.ThreadPoolExecutor(max_workers=1) as ahead:
            visit = next(visits, None)
            opened, finished = ahead.submit(self._open, visit, []), []
            while visit:
                reader, epoch, _, count = visit
                batches = opened.result()
                visit = next(visits, None)
                # Dropping a finished tf.data iterator takes seconds, so the other thread holds the last reference.
                opened, finished = ahead.submit(self._open, visit, finished), [batches]
                yield from itertools.islice(batches, count)
                del batches
                reader.remove_epoch(epoch)

    def _visits(self, first_step):
        """(reader, epoch, first batch, number of batches) of every epoch from a step on."""
        for reader, (start, end) in zip(self._readers, self._bounds):
            done = max(first_step - start, 0)
            while done < end - start:
                epoch, first_batch = divmod(done, reader.batches_per_epoch)
                count = min(reader.batches_per_epoch - first_batch, end - start - done)
                yield reader, epoch, first_batch, count
                done += count

    def _open(self, visit, finished):
        """The iterator of a visit, None for none; then lets the finished ones go."""
        opened = None
        if visit is not None:
            reader, epoch, first_batch, _ = visit
            opened = iter(self._distribute(reader.epoch(epoch, first_batch)))
        finished.clear()
        return opened
