"""Which batch fits in memory, from the measured peaks of two smaller ones."""

import dataclasses
import itertools

import tensorflow as tf

from keras_bert.models.flops import training_flops
from keras_bert.training.memory import memory_limit, peak_memory, reset_peak
from keras_bert.training.step_loop import taking

# The rest is for what a few steps do not show: fragments, validation, a second input pipeline.
_USABLE_SHARE = 0.9


@dataclasses.dataclass
class MemoryFit:
    """The line through two measured peaks, in bytes.

    `unit` is what a batch must be a multiple of, and `limit` the memory there is.
    """

    key: str
    batch_size: int
    sequence_length: int
    unit: int
    sizes: tuple[int, int]
    peaks: tuple[int, int]
    limit: int

    @property
    def bytes_an_example(self):
        return (self.peaks[1] - self.peaks[0]) / (self.sizes[1] - self.sizes[0])

    def peak_of(self, batch_size):
        """The peak of a batch."""
        return self.peaks[0] + self.bytes_an_example * (batch_size - self.sizes[0])

    @property
    def largest(self):
        """The largest batch that fits; 0 if none does."""
        room = _USABLE_SHARE * self.limit - self.peaks[0]
        return max(int(self.sizes[0] + room / self.bytes_an_example) // self.unit * self.unit, 0)

    def line(self):
        """The result as people read it."""
        wanted, has = (f"{value / 2**30:.1f} GiB" for value in (self.peak_of(self.batch_size), self.limit))
        fits = (
            f"the largest batch that fits is {self.largest:,}" if self.largest else "not even the smallest batch fits"
        )
        advice = ""
        if self.largest < self.batch_size:
            advice = " Lower it, or raise training.accumulation or set training.recompute_every=1."
        return (
            f"{self.key} {self.batch_size} x {self.sequence_length} needs about {wanted} of {has} of memory; {fits} "
            f"(peaks of {self.sizes[0]} and {self.sizes[1]} examples, extrapolated).{advice}"
        )


def memory_fit(pretraining):
    """The `MemoryFit` of a built `Pretraining` in its largest phase; None where memory cannot be measured.

    It trains a few steps on a quarter and on half a batch. Training any more before would raise the peak.
    """
    config = pretraining.config
    phase = max(range(len(config.phases)), key=lambda index: _work(config, index))
    unit = pretraining.strategy.num_replicas_in_sync * config.training.accumulation
    sizes = _sizes(config.phases[phase].batch_size, unit)
    limit = memory_limit()
    peaks = [_peak(pretraining, phase, size) for size in sizes] if limit else []
    if not limit or None in peaks or peaks[0] >= peaks[1]:
        return None
    of_phase = config.phases[phase]
    return MemoryFit(
        f"phases.{phase}.batch_size", of_phase.batch_size, of_phase.sequence_length, unit, sizes, tuple(peaks), limit
    )


def _work(config, index):
    phase = config.phases[index]
    return phase.batch_size * training_flops(config.model, phase.sequence_length, phase.max_predictions_per_seq)


def _sizes(batch_size, unit):
    """A quarter and half a batch, in multiples of `unit`; the smallest two where that is too little."""
    small = max(batch_size // 4 // unit, 1) * unit
    return small, max(batch_size // 2 // unit * unit, 2 * small)


def _peak(pretraining, phase, size):
    source, loop = pretraining.sources.training[phase], pretraining.config.training.steps_per_loop
    dataset = source.epoch(0).repeat().unbatch().batch(size, drop_remainder=True)
    take = taking(iter(pretraining.distribute(dataset)), dataset, source.widths, loop)
    numbers = itertools.count(0, loop)

    def train():
        step = tf.constant(next(numbers), tf.int64)
        return pretraining.engine.trainer.train(take(loop), step)["grad_norm"].numpy()

    train()  # Compiling takes memory of its own.
    reset_peak()
    train()
    train()
    return peak_memory()
