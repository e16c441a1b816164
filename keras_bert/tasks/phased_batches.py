"""The batches of a run whose phases differ in length and batch size."""

import concurrent.futures
import dataclasses
import functools
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

import tensorflow as tf

from keras_bert.data.batches.length_batches import LengthBatches
from keras_bert.data.batches.shard_batches import ShardBatches
from keras_bert.data.batches.text_batches import TextBatches
from keras_bert.training.budget import StepBudget, TimeBudget
from keras_bert.training.rollbacks import SkippedBatches, batch_number, next_gap
from keras_bert.training.step import Batch
from keras_bert.training.step_loop import LoopBatches, taking

_Take = Callable[[int], Batch | LoopBatches]


class _Visit(NamedTuple):
    """A stretch of one epoch: `batches` batches from `first_batch` on."""

    phase: int
    epoch: int
    first_batch: int
    batches: int


@dataclasses.dataclass(eq=False)
class PhasedBatches:
    """Function (first step, batches to skip) -> the batches from that step to the last, over all phases and epochs.

    The batch of a step depends only on the seed, the step and the skipped batches.

    With `steps_per_loop` larger than 1 it yields `LoopBatches`. A loop of steps ends at multiples of `steps_per_loop`
    and of an epoch's batches, and at the end of each epoch and phase, because each of these has its own iterator.

    Args:
        sources: one source per phase.
        budget: gives the phase of a step.
        distribute: spreads a data set over the replicas.
        steps_per_loop: the most steps in one call.
        any_width: whether a step is traced once for batches of any width, not once per width.
    """

    sources: Sequence[ShardBatches | TextBatches | LengthBatches]
    budget: StepBudget | TimeBudget
    distribute: Callable[[tf.data.Dataset], tf.distribute.DistributedDataset]
    steps_per_loop: int = 1
    any_width: bool = False

    def __call__(
        self, first_step: int, skipped: Sequence[SkippedBatches] = ()
    ) -> Generator[Batch | LoopBatches, None, None]:
        """Yields the batches from `first_step` to the last, without reading earlier ones. Close the generator."""
        # While one epoch trains, the next one is planned and its first batches are made.
        with concurrent.futures.ThreadPoolExecutor(max_workers=1) as ahead:
            step, visit = first_step, self._visit(first_step, skipped)
            finished: list[_Take | None] = []
            opened = ahead.submit(self._open, visit, finished)
            while visit:
                take = opened.result()
                assert take is not None
                expected = self._visit(step + visit.batches, skipped)
                # Dropping a finished tf.data iterator takes seconds, so the other thread holds the last reference.
                opened, finished = ahead.submit(self._open, expected, finished), [take]
                end = step + visit.batches
                # Fine-tuning validates after so many steps by default, also if skipped batches end epochs elsewhere.
                first, epoch = self.budget.bounds(visit.phase)[0], self.sources[visit.phase].batches_per_epoch
                # In a run limited by time, a phase ends when its time is up.
                while step < end and self.budget.phase(step) == visit.phase:
                    in_loop = self.steps_per_loop - step % self.steps_per_loop
                    count = min(end - step, in_loop, epoch - (step - first) % epoch)
                    yield take(count)
                    step += count
                del take
                ended, visit = visit, self._visit(step, skipped)
                if visit is None or visit[:2] != ended[:2]:
                    self.sources[ended.phase].remove_epoch(ended.epoch)
                if visit != expected:
                    assert expected is not None  # Time may be up earlier than expected, but not later.
                    finished.append(opened.result())
                    opened, finished = ahead.submit(self._open, visit, finished), []
                    self.sources[expected.phase].remove_epoch(expected.epoch)

    def sample(self) -> tuple[Batch, int]:
        """(a typical global batch of the first phase, how many shapes the batches of the run have)."""
        source = self.sources[0]
        number = source.typical_batch if isinstance(source, LengthBatches) else 0
        batch = next(iter(self.distribute(source.epoch(0, number))))
        return batch, sum(len(source.widths) for source in self.sources)

    @functools.cached_property
    def element_spec(self) -> dict[str, tf.TensorSpec]:
        """The specs of a global batch of the first phase, its width unknown."""
        return self.sources[0].epoch(0).element_spec

    def _visit(self, step: int, skipped: Sequence[SkippedBatches]) -> _Visit | None:
        """The visit from `step` to the end of its epoch or phase, or the next gap; None after the last step."""
        phase = self.budget.phase(step)
        if phase is None:
            return None
        start, end = self.budget.bounds(phase)
        batches_per_epoch = self.sources[phase].batches_per_epoch
        epoch, first_batch = divmod(batch_number(skipped, phase, step - start), batches_per_epoch)
        gap = next_gap(skipped, phase, step - start)
        counts = [batches_per_epoch - first_batch]
        counts += [] if end is None else [end - step]
        counts += [] if gap is None else [start + gap - step]
        return _Visit(phase, epoch, first_batch, min(counts))

    def _open(self, visit: _Visit | None, finished: list[_Take | None]) -> _Take | None:
        """Function (count) -> the input of the next `count` steps of a visit; None without one. Clears `finished`."""
        take = None
        if visit is not None:
            source = self.sources[visit.phase]
            dataset = source.epoch(visit.epoch, visit.first_batch)
            widths = None if self.any_width else source.widths
            take = taking(iter(self.distribute(dataset)), dataset, widths, self.steps_per_loop)
        finished.clear()
        return take
