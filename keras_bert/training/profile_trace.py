"""A profiler's trace of a few steps, for TensorBoard's profile page."""

import math

import tensorflow as tf

from keras_bert.stores import as_os_errors
from keras_bert.training.step_loop import steps_of

PROFILED_STEPS = 5


def profiled(batches, first_step, profile_at, folder):
    """Yields the batches; the steps that consume `PROFILED_STEPS` of them are traced.

    Args:
        batches: iterator of batches, or of `LoopBatches`, of which as many are traced as hold so many steps.
        first_step: the number of the first step, from 0.
        profile_at: steps done before the trace begins. The first steps of a process compile; 50 is late enough.
        folder: a folder of TensorBoard events.
    """
    counted = _Counted(batches, first_step)
    if first_step <= profile_at:
        yield from counted.until(profile_at)
        with as_os_errors(folder):
            tf.profiler.experimental.start(folder)
        try:
            while counted.step < profile_at + PROFILED_STEPS and not counted.is_over:
                # TensorBoard's overview page knows of steps by these marks; the wait for a batch is part of its step.
                with tf.profiler.experimental.Trace("train", step_num=counted.step, _r=1):
                    yield from counted.until(counted.step + 1)
        finally:
            with as_os_errors(folder):
                tf.profiler.experimental.stop()
    yield from counted.until(math.inf)


class _Counted:
    """Batches, and the number of the step that comes next."""

    def __init__(self, batches, first_step):
        self._batches = iter(batches)
        self.step = first_step
        self.is_over = False

    def until(self, end):
        """Yields batches up to that of the step numbered `end`, or of the loop that it falls in."""
        while self.step < end:
            batch = next(self._batches, None)
            if batch is None:
                self.is_over = True
                return
            self.step += steps_of(batch)
            yield batch
            del batch  # See `PhasedBatches`, which lets go of finished iterators in another thread.
