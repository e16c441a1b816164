"""A profiler's trace of a few steps, for TensorBoard's profile page."""

import contextlib
import math
import time
from collections.abc import Callable, Generator, Iterator

import numpy as np
import tensorflow as tf

from keras_bert.core.runtime import all_cores
from keras_bert.core.stores import as_os_errors
from keras_bert.training.step import Batch
from keras_bert.training.step_loop import LoopBatches, steps_of

PROFILED_STEPS = 5


def profiled(
    batches: Generator[Batch | LoopBatches, None, None], first_step: int, profile_at: int, folder: str
) -> Generator[Batch | LoopBatches, None, None]:
    """Yields the batches unchanged, and traces `PROFILED_STEPS` of the steps that consume them.

    Args:
        batches: batches, closed at the end; `LoopBatches` are traced whole until there are that many steps.
        first_step: the number of the first step, from 0.
        profile_at: steps done before the trace starts. A process compiles in its first steps; 50 is late enough.
        folder: a folder of TensorBoard events.
    """
    counted = _Counted(batches, first_step)
    with contextlib.closing(batches):
        if first_step <= profile_at:
            yield from counted.until(profile_at)
            with as_os_errors(folder):
                tf.profiler.experimental.start(folder)
            try:
                while counted.step < profile_at + PROFILED_STEPS and not counted.is_over:
                    # TensorBoard's overview page finds steps by these marks; a step includes the wait for its batch.
                    with tf.profiler.experimental.Trace("train", step_num=counted.step, _r=1):
                        yield from counted.until(counted.step + 1)
            finally:
                with as_os_errors(folder):
                    tf.profiler.experimental.stop()
        yield from counted.until(math.inf)


class _Counted:
    """Batches, and the number of the next step."""

    def __init__(self, batches: Iterator[Batch | LoopBatches], first_step: int):
        self._batches = batches
        self.step = first_step
        self.is_over = False

    def until(self, end: float) -> Iterator[Batch | LoopBatches]:
        """Yields the batches before step `end`; a loop of steps that contains it is yielded whole."""
        while self.step < end:
            batch = next(self._batches, None)
            if batch is None:
                self.is_over = True
                return
            self.step += steps_of(batch)
            yield batch
            del batch  # `PhasedBatches` must hold the last reference, so that it drops iterators in another thread.


# Larger products are hardly faster on a CPU with two cores, and a run begins with four of them.
_SIZES = {"CPU": 1536, "GPU": 8192, "TPU": 8192}


def matmul_peak(strategy: tf.distribute.Strategy, dtype: str = "float32") -> float:
    """FLOP/s of a large square matrix product on all devices of this process together, the best of a few tries.

    Logical CPU devices share the same cores and count once. On a CPU whose ops have only some of the cores each, there
    are as many products side by side as fill all cores.
    """
    devices = strategy.extended.worker_devices
    kind = tf.DeviceSpec.from_string(devices[0]).device_type
    size, count = _SIZES[kind], 1
    if kind == "CPU" and (threads := tf.config.threading.get_intra_op_parallelism_threads()):
        count = max(all_cores() // threads, 1)
    with tf.device(devices[0]):
        squares = [tf.cast(tf.random.stateless_uniform([size, size], [0, part]), dtype) for part in range(count)]
        products = tf.function(lambda: [tf.reduce_sum(tf.matmul(one, one)) for one in squares], autograph=False)
        _seconds(products)  # Traces, and makes the first call's allocations.
        seconds = np.min([_seconds(products) for _ in range(3)])
    return 2.0 * size**3 * count / seconds * (1 if kind == "CPU" else len(devices))


def _seconds(products: Callable[[], list[tf.Tensor]]) -> float:
    started_at = time.perf_counter()
    for total in products():
        total.numpy()
    return time.perf_counter() - started_at
