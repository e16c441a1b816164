"""Estimates a pretraining run's time and memory from a few timed steps of every phase."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from keras_bert.config.objectives import PhaseConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.training import RunConfig
from keras_bert.tasks.pretraining.engine import phase_flops
from keras_bert.tasks.pretraining.run import Pretraining
from keras_bert.training.accumulation import memory_of_a_process
from keras_bert.training.budget import StepBudget
from keras_bert.training.checkpoints import Checkpoints
from keras_bert.training.engine import Engine
from keras_bert.training.memory import explained_out_of_memory, peak_memory, reset_peak
from keras_bert.training.metrics import each_step
from keras_bert.training.processes import agreement
from keras_bert.training.step_loop import taking
from keras_bert.training.strategy import checkpoint_device

_log = logging.getLogger(__name__)

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
        peaks: their peaks in a process or, on GPUs, on the first GPU, in bytes.
        limit: the memory available to a process or, on GPUs, to one GPU, in bytes.
    """

    key: str
    batch_size: int
    sequence_length: int
    unit: int
    sizes: tuple[int, int]
    peaks: tuple[int, int]
    limit: float

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
            f"{self.key} {self.batch_size:,} x {self.sequence_length:,} needs about {needed} of {available} of memory; "
            f"{fits} (peaks of {self.sizes[0]:,} and {self.sizes[1]:,} examples, extrapolated).{advice}"
        )


def memory_fit(pretraining: Pretraining) -> MemoryFit | None:
    """Fits the memory of a built run's largest phase; None if memory cannot be measured.

    Trains a few steps on a quarter and on half of the phase's batch. Call it before any other step: the peak of a
    larger batch would hide these.
    """
    config = pretraining.config
    index = largest_phase(config)
    phase = config.phases[index]
    unit = pretraining.strategy.num_replicas_in_sync * config.training.slices * config.training.parallel_slices
    sizes = _sizes(phase.batch_size, unit)
    limit = memory_of_a_process(pretraining.strategy)
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
    train = _trainer(pretraining, phase, size)
    train()["grad_norm"].numpy()  # Compiling takes memory of its own.
    reset_peak()
    for _ in range(2):
        train()["grad_norm"].numpy()
    return peak_memory()


def _trainer(pretraining: Pretraining, phase: int, size: int | None = None) -> Callable[[], dict[str, Any]]:
    """Function () -> the result of further steps (one or a loop) on a phase's batches; `size` replaces their size."""
    source, loop = pretraining.sources.training[phase], pretraining.config.training.steps_per_loop
    dataset = source.epoch(0).repeat()
    if size is not None:
        dataset = dataset.unbatch().batch(size, drop_remainder=True)
    take = taking(iter(pretraining.distribute(dataset)), dataset, source.widths, loop)
    numbers = itertools.count(0, loop)
    # A `StepLoop` comes with `LoopBatches`.
    return lambda: pretraining.engine.trainer.train(take(loop), tf.constant(next(numbers), tf.int64))  # type: ignore[arg-type]


_WARM_UP_SECONDS, _TIMED_SECONDS = 3.0, 6.0
_LEAST_STEPS = 3
_BYTES_A_FLOAT = 4


@dataclasses.dataclass
class Timing:
    """A phase's seconds per step, for compiling and per validation, and its tokens per step."""

    step: float
    compile: float
    evaluation: float
    tokens: float


@dataclasses.dataclass
class PhaseEstimate:
    """One phase of a run; `epochs` is None for raw text, whose length is unknown."""

    config: PhaseConfig
    steps: int
    epochs: float | None
    timing: Timing

    @property
    def sequences(self) -> int:
        return self.steps * self.config.batch_size

    @property
    def tokens(self) -> float:
        return self.steps * self.timing.tokens

    @property
    def seconds(self) -> float:
        return self.steps * self.timing.step + self.timing.compile


@dataclasses.dataclass
class Estimate:
    """A whole run; times in seconds, memory in bytes.

    Attributes:
        parameters: how many the model has.
        phases: one estimate per phase.
        evaluations: how many validations.
        checkpoints: how many checkpoints.
        seconds: time of training, with validations and checkpoints.
        parameter_memory: memory for weights, gradients and the optimizer's state.
        memory: the most in use during the timed steps; None if unknown.
        seconds_before: time to initialize the weights.
        fit: which batch fits in memory; None if unknown.
    """

    parameters: int
    phases: list[PhaseEstimate]
    evaluations: int
    checkpoints: int
    seconds: float
    parameter_memory: int
    memory: int | None
    seconds_before: float
    fit: MemoryFit | None

    def lines(self) -> Iterator[str]:
        """The estimate as lines of text."""
        for phase in self.phases:
            epochs = "" if phase.epochs is None else f" ({_count(phase.epochs)} epochs)"
            yield (
                f"{phase.steps:,} steps of {phase.config.batch_size:,} x {phase.config.sequence_length:,}: "
                f"{phase.sequences:,} sequences{epochs}, {phase.tokens:,.0f} tokens, "
                f"{phase.timing.step * 1000:,.1f} ms a step, {duration(phase.seconds)}"
            )
        memory = "" if self.memory is None else f"; {self.memory / 2**30:.1f} GiB in use at peak"
        yield (
            f"Parameters: {self.parameters:,}. Memory: {self.parameter_memory / 2**30:.2f} GiB for weights, "
            f"gradients and the optimizer's state{memory}."
        )
        if self.fit is not None:
            yield self.fit.line()
        if not any(phase.steps for phase in self.phases):
            taken = sum(phase.timing.compile for phase in self.phases) + self.phases[-1].timing.evaluation
            yield (
                f"No step fits into training.minutes: of {duration(self.seconds)}, compiling and the last validation "
                f"alone take {duration(taken)}. Raise training.minutes."
            )
        if self.seconds_before >= 1.0:
            yield f"Before the first step, once: {duration(self.seconds_before)} to initialize the weights."
        yield (
            f"In total, with {self.evaluations:,} validations and {self.checkpoints:,} checkpoints: "
            f"{sum(phase.tokens for phase in self.phases):,.0f} tokens, {duration(self.seconds)}."
        )


def _count(number: float) -> str:
    """A number of epochs: two significant digits if it is small, a whole number if it is large."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def estimate(pretraining: Pretraining) -> Estimate:
    """Estimates a built run. The timed steps change its weights, which are not saved.

    Raises:
        UserError: a batch does not fit in memory.
    """
    config, training = pretraining.config, pretraining.config.training
    started_at = time.perf_counter()
    pretraining.begin()
    seconds_before = time.perf_counter() - started_at
    # Before whole batches are tried. With `jit_compile: auto` the step is not compiled yet, and has to fit anyway.
    with _explained(pretraining, largest_phase(config)):
        fit = memory_fit(pretraining)
    if fit is not None and fit.largest < fit.batch_size:
        _log.info(fit.line())  # In case the steps below end the process.
    with _explained(pretraining, 0):
        pretraining.choose_compilation(0)
    timings = []
    for phase in range(len(config.phases)):
        with _explained(pretraining, phase):
            timings.append(time_phase(pretraining, phase))
    save_seconds = time_checkpoint(pretraining)
    steps = _steps(config, timings, save_seconds)
    examples = (source.examples_per_epoch for source in pretraining.sources.training)
    phases = [
        PhaseEstimate(phase, count, count * phase.batch_size / of_epoch if of_epoch else None, timing)
        for phase, count, of_epoch, timing in zip(config.phases, steps, examples, timings)
    ]
    shares = [count / _checkpoint_every(training, timing) for count, timing in zip(steps, timings)]
    checkpoints = math.ceil(round(sum(shares), 6))
    evaluations = _evaluations(steps, training.evaluate_every)
    seconds = 60.0 * training.minutes or (
        sum(phase.seconds for phase in phases)
        + sum(timing.evaluation * count for timing, count in zip(timings, evaluations))
        + checkpoints * save_seconds
    )
    return Estimate(
        parameters=pretraining.engine.model.count_params(),
        phases=phases,
        evaluations=sum(evaluations),
        checkpoints=checkpoints,
        seconds=seconds,
        parameter_memory=_parameter_memory(pretraining.engine),
        memory=peak_memory(),
        seconds_before=seconds_before,
        fit=fit,
    )


def _explained(pretraining: Pretraining, phase: int) -> contextlib.AbstractContextManager[None]:
    """A block with steps of a phase; see `explained_out_of_memory`."""
    config = pretraining.config
    batch = f"phases.{phase}.batch_size", config.phases[phase].batch_size
    return explained_out_of_memory(lambda: batch, pretraining.strategy, config.training.slices)


def time_phase(pretraining: Pretraining, phase: int) -> Timing:
    """Trains a few steps on a phase's own batches, and evaluates once."""
    loop, train = pretraining.config.training.steps_per_loop, _trainer(pretraining, phase)
    started_at = time.perf_counter()
    train()  # Traces and compiles.
    compile_seconds = time.perf_counter() - started_at
    # The first seconds are slower, while the source also fills its buffers.
    agree = agreement(pretraining.strategy)
    _timed(train, _WARM_UP_SECONDS, agree)
    step_seconds, tokens = _timed(train, _TIMED_SECONDS, agree)
    pretraining.evaluate(phase)  # Traces.
    started_at = time.perf_counter()
    pretraining.evaluate(phase)
    return Timing(
        step_seconds, max(compile_seconds - loop * step_seconds, 0.0), time.perf_counter() - started_at, tokens
    )


def _timed(train: Callable[[], dict[str, Any]], seconds: float, agree: Callable[[float], float]) -> tuple[float, float]:
    """(seconds per step, tokens per step) over as many calls as fit, but at least `_LEAST_STEPS` steps.

    A step sums over all processes, so they do equally many, by `agree` (see `processes.agreement`).
    """
    tokens, count, started_at = 0.0, 0, time.perf_counter()
    while count < _LEAST_STEPS or agree(time.perf_counter() - started_at < seconds) > 0:
        steps = each_step(train())
        tokens += sum(float(step["tokens"]) for step in steps)
        count += len(steps)
    return (time.perf_counter() - started_at) / count, tokens / count


def time_checkpoint(pretraining: Pretraining) -> float:
    """The seconds it takes to write a checkpoint to this machine's temporary folder."""
    engine, device = pretraining.engine, checkpoint_device(pretraining.strategy)
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = Checkpoints(folder, 1, io_device=device, model=engine.model, optimizer=engine.optimizer)
        started_at = time.perf_counter()
        checkpoints.save(0)
        return time.perf_counter() - started_at


def _steps(config: PretrainConfig, timings: Sequence[Timing], save_seconds: float) -> list[int]:
    """The steps of every phase: the recipe's or, in a run limited by time, as many as fit, if any."""
    training, shares = config.training, [phase.share for phase in config.phases]
    if not training.minutes:
        budget = StepBudget(training.steps, shares)
        return [end - start for start, end in (budget.bounds(phase) for phase in range(len(shares)))]
    left = 60.0 * training.minutes - sum(timing.compile for timing in timings) - timings[-1].evaluation
    left = max(left, 0.0)
    savings = [save_seconds / _checkpoint_every(training, timing) for timing in timings]
    return [
        round(left * share / (timing.step + timing.evaluation / training.evaluate_every + saving))
        for share, timing, saving in zip(shares, timings, savings)
    ]


def _evaluations(steps: Sequence[int], evaluate_every: int) -> list[int]:
    """How many validations each phase has: one every so many steps of the run, and one at its end."""
    done = [0, *(end // evaluate_every for end in itertools.accumulate(steps))]
    done[-1] = max(math.ceil(sum(steps) / evaluate_every), 1)
    return [now - before for before, now in itertools.pairwise(done)]


def _checkpoint_every(training: RunConfig, timing: Timing) -> float:
    """The steps from one checkpoint to the next: `checkpoint_every`, or those of `checkpoint_minutes` if fewer."""
    by_time = 60.0 * training.checkpoint_minutes / timing.step
    return min(training.checkpoint_every, max(by_time, 1.0)) if by_time else training.checkpoint_every


def _parameter_memory(engine: Engine) -> int:
    """Bytes of the weights, their gradients, and the optimizer's moments and averages."""
    model = engine.model
    variables = [*model.weights, *model.trainable_variables, *engine.optimizer.variables]
    return _BYTES_A_FLOAT * sum(math.prod(variable.shape) for variable in variables if len(variable.shape))


def duration(seconds: float) -> str:
    """Seconds as a short text, such as "3.5 hours"."""
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    if seconds < 7200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
