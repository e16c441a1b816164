"""A profiler's trace of a few steps, for TensorBoard's profile page."""

import itertools

import tensorflow as tf

from keras_bert.stores import as_os_errors

PROFILED_STEPS = 5


def profiled(batches, first_step, profile_at, folder):
    """Yields the batches; the steps that consume `PROFILED_STEPS` of them are traced.

    Args:
        batches: iterator of batches.
        first_step: the number of the first step, from 0.
        profile_at: steps done before the trace begins. The first steps of a process compile; 50 is late enough.
        folder: a folder of TensorBoard events.
    """
    batches = iter(batches)
    if first_step <= profile_at:
        yield from itertools.islice(batches, profile_at - first_step)
        with as_os_errors(folder):
            tf.profiler.experimental.start(folder)
        try:
            for step in range(profile_at, profile_at + PROFILED_STEPS):
                # TensorBoard's overview page knows of steps by these marks; the wait for a batch is part of its step.
                with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
                    yield from itertools.islice(batches, 1)
        finally:
            with as_os_errors(folder):
                tf.profiler.experimental.stop()
    yield from batches
