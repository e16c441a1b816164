"""`training.jit_compile: auto`: a timing at the start of a run decides whether to compile with XLA."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import keras
import tensorflow as tf

from keras_bert.training.memory import is_out_of_memory
from keras_bert.training.step import Batch, Step

_log = logging.getLogger(__name__)

_TIMED_STEPS = 3
# With less training left for each batch shape, compiling all of them would take longer than it could save. Timing one
# compiles it too.
SHORTEST_SECONDS = 60.0


class Choice(tf.Module):
    """Whether a run compiles; checkpointed, because compiled steps draw other dropout masks and round differently.

    Attributes:
        value: int32 variable, 1 or 0, or -1 until it is decided.
    """

    def __init__(self) -> None:
        super().__init__(name="compilation")
        self.value = tf.Variable(-1, trainable=False, name="compiles")


class StepSeconds(NamedTuple):
    """Attributes:
    first: seconds of the first call, with tracing and, for a compiled step, compilation.
    later: seconds of each later call.
    """

    first: float
    later: float


def time_step(step: Step, batch: Batch) -> StepSeconds:
    """Times a few steps on one batch; they change the weights and the optimizer's state."""
    return StepSeconds(_seconds(step, batch), later_seconds(step, batch))


def time_if_it_fits(step: Step, batch: Batch) -> StepSeconds | None:
    """`time_step`, or None if memory runs out."""
    try:
        return time_step(step, batch)
    except (tf.errors.OpError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        return None


def later_seconds(step: Step, batch: Batch) -> float:
    """Seconds of the fastest of a few calls; see `time_step`."""
    return min(_seconds(step, batch) for _ in range(_TIMED_STEPS))


def _seconds(step: Step, batch: Batch) -> float:
    started_at = time.perf_counter()
    step.train(batch, tf.constant(0, tf.int64))["grad_norm"].numpy()
    return time.perf_counter() - started_at


def pays(plain: StepSeconds, compiled: StepSeconds, other_shapes: int, seconds_left: float) -> bool:
    """Whether a run with compiled steps ends sooner or, in a fixed time, gets further.

    Args:
        plain, compiled: times of both steps for one batch shape, which is compiled by now.
        other_shapes: how many batch shapes are still to be compiled.
        seconds_left: how long the run would take without compilation.
    """
    return other_shapes * _compile_seconds(plain, compiled) + seconds_left * compiled.later / plain.later < seconds_left


def _compile_seconds(plain: StepSeconds, compiled: StepSeconds) -> float:
    """Seconds to compile one batch shape, without the tracing, which both steps need."""
    return max((compiled.first - compiled.later) - (plain.first - plain.later), 0.0)


def decision(compiles: bool, plain: StepSeconds, compiled: StepSeconds, other_shapes: int, seconds_left: float) -> str:
    """The decision in one line, with the measured times."""
    still = other_shapes * _compile_seconds(plain, compiled)
    return (
        f"jit_compile auto: {'compiled' if compiles else 'not compiled'}. A step takes {compiled.later:.3g} seconds "
        f"with XLA, {plain.later:.3g} without; {seconds_left:,.0f} seconds of training are left, and compiling "
        f"{other_shapes} more batch shapes takes {still:,.0f}."
    )


@contextlib.contextmanager
def unchanged(variables: Iterable[keras.Variable | tf.Variable]) -> Iterator[None]:
    """A block after which the variables have their old values."""
    kept = [(variable, variable.numpy()) for variable in variables]
    try:
        yield
    finally:
        for variable, value in kept:
            variable.assign(value)


def choose(
    plain: Step,
    compiled: Step,
    batch: Batch,
    shapes: int,
    seconds_left: Callable[[float], float],
    chief_decides: Callable[[Callable[[], bool]], bool],
    is_alone: bool,
) -> bool:
    """Times both steps and returns whether to compile; all variables keep their values.

    Args:
        plain, compiled: the same step without and with XLA, sharing model and optimizer.
        shapes: how many shapes the run's batches have.
        seconds_left: function (seconds per step) -> seconds of training left.
        chief_decides: a collective that gives every process the chief's answer, because their clocks differ.
        is_alone: whether the run has one process. With several, a compiled step that does not fit in memory ends the
            run: the others are waiting for this one's gradients and cannot be told.
    """
    assert plain.optimizer is not None
    scale = [] if plain.loss_scale is None else plain.loss_scale.variables
    memory = [] if plain.memory is None else plain.memory.variables
    with unchanged([*plain.model.variables, *plain.optimizer.variables, *scale, *memory]):
        without = time_step(plain, batch)
        left, shortest = seconds_left(without.later), SHORTEST_SECONDS * shapes
        if not chief_decides(lambda: left >= shortest):
            _log.info(
                f"jit_compile auto: not compiled, because {left:,.0f} seconds of training are left, and compiling "
                f"pays after {shortest:,.0f} at the earliest ({SHORTEST_SECONDS:,.0f} for each batch shape)."
            )
            return False
        with_xla = time_if_it_fits(compiled, batch) if is_alone else time_step(compiled, batch)
        if with_xla is None:
            _log.info("jit_compile auto: not compiled, because the compiled step does not fit in memory.")
            return False
        # Again, because the first steps of a process also fill its memory for the first time: they took up to twice as
        # long as later ones.
        without = without._replace(later=min(without.later, later_seconds(plain, batch)))
        left = seconds_left(without.later)
    compiles = chief_decides(lambda: pays(without, with_xla, shapes - 1, left))
    _log.info(decision(compiles, without, with_xla, shapes - 1, left))
    return compiles
