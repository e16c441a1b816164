"""`training.jit_compile: auto`: whether compiling with XLA pays is timed at the start of a run, and kept with it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import keras
import tensorflow as tf

from keras_bert.training.step import Batch, Step

_TIMED_STEPS = 3
# A shorter run ends before the timing of compiled steps would.
SHORTEST_SECONDS = 60.0


class Choice(tf.Module):
    """Whether a run compiles; in its checkpoints, because compiled steps draw other dropout masks and round otherwise.

    Attributes:
        value: int32 variable, 1 or 0, or -1 before it is known.
    """

    value: tf.Variable

    def __init__(self) -> None:
        super().__init__(name="compilation")
        self.value = tf.Variable(-1, trainable=False, name="compiles")


class StepSeconds(NamedTuple):
    """Attributes:
    first: seconds of the first call, which traces and, if it compiles, compiles.
    later: seconds of each later call.
    """

    first: float
    later: float


def time_step(step: Step, batch: Batch) -> StepSeconds:
    """Times a few steps on one batch; they change weights and optimizer."""
    seconds = [_seconds(step, batch) for _ in range(1 + _TIMED_STEPS)]
    return StepSeconds(seconds[0], min(seconds[1:]))


def _seconds(step: Step, batch: Batch) -> float:
    began = time.perf_counter()
    step.train(batch, tf.constant(0, tf.int64))["grad_norm"].numpy()
    return time.perf_counter() - began


def pays(plain: StepSeconds, compiled: StepSeconds, other_shapes: int, seconds_left: float) -> bool:
    """Whether compiled steps end a run sooner, or get further in the same time.

    Args:
        plain, compiled: steps of one shape of batch, which is compiled by now.
        other_shapes: shapes of the run's batches that are still to be compiled.
        seconds_left: of the run without compiling.
    """
    return other_shapes * _compile_seconds(plain, compiled) + seconds_left * compiled.later / plain.later < seconds_left


def _compile_seconds(plain: StepSeconds, compiled: StepSeconds) -> float:
    """Seconds to compile one shape, without those to trace it, which both kinds of steps take."""
    return max((compiled.first - compiled.later) - (plain.first - plain.later), 0.0)


def said(compiles: bool, plain: StepSeconds, compiled: StepSeconds, other_shapes: int, seconds_left: float) -> str:
    """The decision in one line, with the measured times."""
    still = other_shapes * _compile_seconds(plain, compiled)
    return (
        f"jit_compile auto: {'compiled' if compiles else 'not compiled'}. A step takes {compiled.later:.3g} seconds "
        f"compiled, {plain.later:.3g} not compiled; {seconds_left:,.0f} seconds of training are left, and {still:,.0f} "
        f"to compile {other_shapes} more shapes of batches."
    )


@contextlib.contextmanager
def unchanged(variables: Iterable[keras.Variable | tf.Variable]) -> Iterator[None]:
    """A block after which the variables have their values again."""
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
    chief_says: Callable[[Callable[[], bool]], bool],
    report: Callable[[str], object],
) -> bool:
    """Times both steps, which share model and optimizer, and returns whether to compile. Nothing else changes.

    Args:
        plain, compiled: the same step without and with XLA.
        batch: a global batch.
        shapes: how many shapes the run's batches have.
        seconds_left: function (seconds of a step) -> seconds that the run has left.
        chief_says: a collective: the chief's answer to a question, in every process. The clocks of the others differ.
        report: takes the line that says what was decided.
    """
    assert plain.optimizer is not None
    scale = [] if plain.loss_scale is None else plain.loss_scale.variables
    with unchanged([*plain.model.variables, *plain.optimizer.variables, *scale]):
        without = time_step(plain, batch)
        left = seconds_left(without.later)
        if not chief_says(lambda: left >= SHORTEST_SECONDS):
            report(f"jit_compile auto: not compiled, because only {left:,.0f} seconds of training are left.")
            return False
        with_xla = time_step(compiled, batch)
    compiles = chief_says(lambda: pays(without, with_xla, shapes - 1, left))
    report(said(compiles, without, with_xla, shapes - 1, left))
    return compiles
