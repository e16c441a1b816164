"""The largest batch that fits in memory, extrapolated from the measured peaks of two smaller ones."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

import tensorflow as tf

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.tasks.pretraining.phase_flops import phase_flops
from keras_bert.training.memory import memory_limit, peak_memory, reset_peak
from keras_bert.training.step_loop import taking

if TYPE_CHECKING:
    from keras_bert.tasks.pretraining.run import Pretraining

# The rest is for what a few steps do not show: fragmentation, validation, a second input pipeline.
_USABLE_SHARE = 0.9


@dataclasses.dataclass
class MemoryFit:
    """Peak memory as a linear function of the batch size, through two measurements.

    Attributes:
        key: the key of the batch size in the recipe.
        batch_size, sequence_length: those of the recipe's largest phase.
        unit: batch sizes must be multiples of this.
        sizes: the two batch sizes that were measured, the smaller first.
        peaks: their peaks, in bytes.
        limit: the memory available, in bytes.
    """

    key: str
    batch_size: int
    sequence_length: int
    unit: int
    sizes: tuple[int, int]
    peaks: tuple[int, int]
    limit: int

    @property
    def bytes_per_example(self) -> float:
        return (self.peaks[1] - self.peaks[0]) / (self.sizes[1] - self.sizes[0])

    def peak_of(self, batch_size: int) -> float:
        """The estimated peak of a batch, in bytes."""
        return self.peaks[0] + self.bytes_per_example * (batch_size - self.sizes[0])

    @property
    def largest(self) -> int:
        """The largest batch size that fits; 0 if none does."""
        room = _USABLE_SHARE * self.limit - self.peaks[0]
        return max(int(self.sizes[0] + room / self.bytes_per_example) // self.unit * self.unit, 0)

    def line(self) -> str:
        """The result in one line, with advice if the recipe's batch does not fit."""
        needed, available = (f"{value / 2**30:.1f} GiB" for value in (self.peak_of(self.batch_size), self.limit))
        fits = (
            f"the largest batch that fits is {self.largest:,}" if self.largest else "not even the smallest batch fits"
        )
        advice = ""
        if self.largest < self.batch_size:
            advice = " Lower it, or raise training.accumulation or set training.recompute_every=1."
        return (
            f"{self.key} {self.batch_size} x {self.sequence_length} needs about {needed} of {available} of memory; "
            f"{fits} (peaks of {self.sizes[0]} and {self.sizes[1]} examples, extrapolated).{advice}"
        )


def memory_fit(pretraining: Pretraining) -> MemoryFit | None:
    """Fits the memory of a built run's largest phase; None if memory cannot be measured.

    Trains a few steps on a quarter and on half of the phase's batch. Call it before any other step: the peak of a
    larger batch would hide these.
    """
    config = pretraining.config
    index = largest_phase(config)
    phase = config.phases[index]
    unit = pretraining.strategy.num_replicas_in_sync * config.training.accumulation
    sizes = _sizes(phase.batch_size, unit)
    limit = memory_limit()
    if not limit:
        return None
    small, large = (_peak(pretraining, index, size) for size in sizes)
    if small is None or large is None or small >= large:
        return None
    key = f"phases.{index}.batch_size"
    return MemoryFit(key, phase.batch_size, phase.sequence_length, unit, sizes, (small, large), limit)


def largest_phase(config: PretrainConfig) -> int:
    """The index of the phase whose step takes the most FLOPs."""
    return max(
        range(len(config.phases)), key=lambda phase: config.phases[phase].batch_size * phase_flops(config, phase)
    )


def _sizes(batch_size: int, unit: int) -> tuple[int, int]:
    """A quarter and a half of a batch in multiples of `unit`, or the two smallest multiples."""
    small = max(batch_size // 4 // unit, 1) * unit
    return small, max(batch_size // 2 // unit * unit, 2 * small)


def _peak(pretraining: Pretraining, phase: int, size: int) -> int | None:
    """The peak memory of training on batches of `size` examples, in bytes; None if it cannot be measured."""
    source, loop = pretraining.sources.training[phase], pretraining.config.training.steps_per_loop
    dataset = source.epoch(0).repeat().unbatch().batch(size, drop_remainder=True)
    take = taking(iter(pretraining.distribute(dataset)), dataset, source.widths, loop)
    numbers = itertools.count(0, loop)

    def train() -> None:
        step = tf.constant(next(numbers), tf.int64)
        # A `StepLoop` comes with `LoopBatches`.
        pretraining.engine.trainer.train(take(loop), step)["grad_norm"].numpy()  # type: ignore[arg-type]

    train()  # Compiling takes memory of its own.
    reset_peak()
    train()
    train()
    return peak_memory()
