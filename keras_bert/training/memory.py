"""Peak and available memory: of the GPUs or, without any, of this process and machine."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import tensorflow as tf

from keras_bert.core.errors import UserError

try:
    import resource
except ImportError:  # Windows.
    resource = None  # type: ignore[assignment]

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def peak_memory() -> int | None:
    """Peak memory of the first GPU, or else of this process, in bytes; None if unknown.

    It counts from `reset_peak` or, where the peak cannot be reset, from the start of the process.
    """
    if tf.config.list_logical_devices("GPU"):
        return tf.config.experimental.get_memory_info("GPU:0")["peak"]
    in_kilobytes = _colon_values("/proc/self/status").get("VmHWM")
    if in_kilobytes is not None:
        return 1024 * in_kilobytes
    if resource is None:
        return None
    # Linux counts kilobytes, macOS bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def reset_peak() -> None:
    """Resets the peak, after giving freed memory back to the system. Without a GPU this works on Linux only."""
    if tf.config.list_logical_devices("GPU"):
        tf.config.experimental.reset_memory_stats("GPU:0")
        return
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)  # glibc only.
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as stream:
        stream.write("5")  # See proc(5).


def memory_limit() -> int | None:
    """Memory available to this process, in bytes; None if unknown.

    That is the memory of the smallest GPU or, without a GPU, the machine's free memory plus what this process uses, but
    no more than a container's limit.
    """
    if tf.config.list_logical_devices("GPU"):
        return _gpu_memory()
    limits = [limit for limit in (_free_and_own(), _container_limit()) if limit]
    return min(limits, default=None)


def _gpu_memory() -> int | None:
    command = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        lines = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.split("\n")
        return min(2**20 * int(line) for line in lines if line.strip())
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _free_and_own() -> int | None:
    free, own = _colon_values("/proc/meminfo").get("MemAvailable"), _colon_values("/proc/self/status").get("VmRSS")
    if free is not None and own is not None:
        return 1024 * (free + own)
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _container_limit() -> int | None:
    for path in _CGROUP_LIMITS:
        with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as stream:
            return int(stream.read())  # "max", which is no number, means no limit.
    return None


def _colon_values(path: str) -> dict[str, int]:
    """`{name: kilobytes}` from lines such as `VmHWM:  123 kB`; {} if there is no such file."""
    values = {}
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as stream:
        for line in stream:
            name, _, value = line.partition(":")
            if value.strip().endswith(" kB"):
                values[name] = int(value.split()[0])
    return values


_SIGNS = ("RESOURCE_EXHAUSTED", "OOM when allocating", "Out of memory", "out of memory")


@contextlib.contextmanager
def explained_out_of_memory(
    batch: Callable[[], tuple[str, int]], strategy: tf.distribute.Strategy, accumulation: int
) -> Iterator[None]:
    """Turns an out-of-memory error of TensorFlow or XLA into a `UserError` with the settings to try.

    Args:
        batch: function () -> (key of the batch size in the recipe, batch size) at the time of the error.
        accumulation: the recipe's `training.accumulation`.
    """
    try:
        yield
    except (tf.errors.OpError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        key, batch_size = batch()
        raise UserError(
            f"Out of memory with {key} {batch_size} on {strategy.num_replicas_in_sync} replica(s) and "
            f"training.accumulation {accumulation}. {advice(batch_size, strategy.num_replicas_in_sync, accumulation)}"
        ) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out; XLA raises other classes for it than TensorFlow does."""
    if isinstance(error, (MemoryError, tf.errors.ResourceExhaustedError)):
        return True
    return any(sign in str(error) for sign in _SIGNS)


def advice(batch_size: int, replicas: int, accumulation: int) -> str:
    """One sentence: a larger accumulation that divides a replica's part, and the batch size that halves the memory."""
    part = batch_size // replicas
    slices = next((n for n in range(2 * accumulation, part + 1) if part % n == 0), None)
    if slices is None:
        return "Already one example at a time: use a shorter sequence_length, a smaller model or a larger device."
    half = max(batch_size // (2 * replicas * accumulation), 1) * replicas * accumulation
    smaller = f", or a batch size of {half}" if half < batch_size else ""
    return f"Try training.accumulation={slices} (the same results in more slices){smaller}."
