"""A profiler's trace of a few steps, for TensorBoard's profile page."""

import tensorflow as tf

PROFILED_STEPS = 5


def profiled(batches, first_step, profile_at, folder):
    """Yields the batches; the steps that consume `PROFILED_STEPS` of them are traced.

    Args:
        batches: iterator of batches.
        first_step: the number of the first step, from 0.
        profile_at: steps done before the trace begins. The first steps of a process compile; 50 is late enough.
        folder: a folder of TensorBoard events.
    """
    tracing = False
    try:
        for step, batch in enumerate(batches, start=first_step):
            if step == profile_at:
                tf.profiler.experimental.start(folder)
                tracing = True
            elif tracing and step == profile_at + PROFILED_STEPS:
                tf.profiler.experimental.stop()
                tracing = False
            yield batch
    finally:
        if tracing:
            tf.profiler.experimental.stop()
