"""The machine's speed in matrix multiplication, which a training step's is compared with."""

import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf

_SIZES = {"CPU": 2048, "GPU": 8192, "TPU": 8192}


def matmul_peak(strategy: tf.distribute.Strategy, dtype: str = "float32") -> float:
    """FLOP/s of a large square matrix multiplication on all devices of this process together, the best of a few tries.

    Logical CPU devices share the same cores and count once.
    """
    devices = strategy.extended.worker_devices
    kind = tf.DeviceSpec.from_string(devices[0]).device_type
    size = _SIZES[kind]
    with tf.device(devices[0]):
        square = tf.cast(tf.random.stateless_uniform([size, size], [0, 0]), dtype)
        product = tf.function(lambda: tf.reduce_sum(tf.matmul(square, square)), autograph=False)
        product().numpy()  # Traces, and makes the first call's allocations.
        seconds = np.min([_seconds(product) for _ in range(4)])
    return 2.0 * size**3 / seconds * (1 if kind == "CPU" else len(devices))


def _seconds(product: Callable[[], tf.Tensor]) -> float:
    began = time.perf_counter()
    product().numpy()
    return time.perf_counter() - began
