"""A profiler's trace of a few steps, for TensorBoard's profile page."""

import contextlib
import itertools

import tensorflow as tf

PROFILED_STEPS = 5
_OVER = object()


def profiled(batches, first_step, profile_at, folder):
    """Yields the batches; the steps that consume `PROFILED_STEPS` of them are traced.

    Args:
        batches: iterator of batches.
        first_step: the number of the first step, from 0.
        profile_at: steps done before the trace begins. The first steps of a process compile; 50 is late enough.
        folder: a folder of TensorBoard events.
    """
    tracing, batches = False, iter(batches)
    try:
        for step in itertools.count(first_step):
            if step == profile_at:
                tf.profiler.experimental.start(folder)
                tracing = True
            elif tracing and step == profile_at + PROFILED_STEPS:
                tf.profiler.experimental.stop()
                tracing = False
            # The overview page knows nothing of steps but by these marks; waiting for the batch is part of its step.
            mark = tf.profiler.experimental.Trace("train", step_num=step, _r=1) if tracing else contextlib.nullcontext()
            with mark:
                batch = next(batches, _OVER)
                if batch is _OVER:
                    return
                yield batch
    finally:
        if tracing:
            tf.profiler.experimental.stop()
