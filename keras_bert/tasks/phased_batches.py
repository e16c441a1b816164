"""The batches of a run whose phases differ in length and batch size."""

import concurrent.futures


class PhasedBatches:
    """`batch = f(step)` over phases and epochs.

    Args:
        readers: one `PairReader` a phase.
        shares: each phase's share of all steps, summing to 1.
        steps: steps of the whole run.
        distribute: function that spreads a `tf.data.Dataset` over the replicas.
    """

    def __init__(self, readers, shares, steps, distribute):
        self.readers = readers
        self.distribute = distribute
        ends = [round(steps * sum(shares[: index + 1])) for index in range(len(shares))]
        self._bounds = list(zip([0, *ends[:-1]], ends))

    def phase(self, step):
        """The index of the phase in which the step numbered `step` (from 0) falls."""
        return next(index for index, (_, end) in enumerate(self._bounds) if step < end)

    def __call__(self, first_step):
        """Yields the batches from the step numbered `first_step` to the last, starting by arithmetic."""
        with concurrent.futures.ThreadPoolExecutor(max_workers=1) as planner:
            for reader, (start, end) in zip(self.readers, self._bounds):
                done = max(first_step - start, 0)
                while done < end - start:
                    epoch, first_batch = divmod(done, reader.batches_per_epoch)
                    reader.prepare_epoch(epoch)
                    dataset = self.distribute(reader.epoch(epoch, first_batch))
                    # The next epoch's pairs are planned while this one trains.
                    planner.submit(reader.prepare_epoch, epoch + 1)
                    for batch in dataset:
                        yield batch
                        done += 1
                        if done == end - start:
                            break
