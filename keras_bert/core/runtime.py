"""Imports TensorFlow for a command, without its pages of log messages and without packages that no command needs."""

import contextlib
import ctypes
import gc
import importlib.abc
import importlib.machinery
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from keras_bert.core.errors import UserError
from keras_bert.core.program import command_line

# mallopt(3), from malloc.h of glibc. Other C libraries, and allocators preloaded instead of its own, do not have it.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8
_SETTINGS = {_ARENA_MAX: 1, _MMAP_MAX: 0, _TRIM_THRESHOLD: -1}
# What another program may want of Keras, in the shell or in ~/.keras/keras.json, breaks this one: another backend,
# float16, or the Keras of before, which tensorflow-text would ask for. Keras cannot read or write a null device's file.
_KERAS = {"KERAS_BACKEND": "tensorflow", "KERAS_HOME": os.devnull, "TF_USE_LEGACY_KERAS": "0"}
_UNUSED = ("IPython", "matplotlib", "pandas", "sklearn")
# Microseconds of all cores together in each period, of both versions of Linux's control groups.
_CPU_LIMITS = (
    ("/sys/fs/cgroup/cpu.max",),
    ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
)


def keep_freed_memory() -> bool:
    """Keeps large freed blocks in the process instead of returning them to the system; False if that cannot be set.

    glibc returns large blocks at once. A step on a CPU frees and allocates hundreds of megabytes, and a sixth of its
    time went into pages that the system had to clear again (docs/performance.md). All threads share one arena, because
    the arenas of other threads cannot hold large blocks. No block gets its own mapping: a size threshold for mappings
    would not last, as TensorFlow sets its own with the first dataset from a generator (on Python 3.11).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    # A list, so that all are set even if the first fails.
    return all([mallopt(name, value) for name, value in _SETTINGS.items()])  # noqa: C419


def import_tensorflow(debug: bool = False) -> None:
    """Imports TensorFlow and finds the devices. Its stderr is shown only if that fails, or with `debug`.

    Its C++ side logs before it reads any logging setting, so the file descriptor itself is redirected.
    """
    if debug:
        _import()
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with stderr_withheld():
        tf = _import()
    # It warns about every retracing after the fifth, which batches of different lengths cause on purpose.
    tf.get_logger().setLevel("ERROR")
    if not command_line():
        require_backend()


def require_backend() -> None:
    """Raises `UserError` if the program that called this one has chosen another backend or `floatx` for Keras."""
    import keras

    if (backend := keras.backend.backend()) != _KERAS["KERAS_BACKEND"]:
        raise UserError(
            f"Keras: needs the backend tensorflow. Received: {backend}. Set KERAS_BACKEND=tensorflow in the "
            "environment, before Keras is imported."
        )
    if (floatx := keras.config.floatx()) != "float32":
        raise UserError(
            f"Keras: needs the floatx float32, in which weights are kept. Received: {floatx}. Call "
            'keras.config.set_floatx("float32"); keras.config.set_dtype_policy("mixed_float16") computes in half.'
        )


def _import() -> ModuleType:
    """TensorFlow, with the allocator set up if all computation will be on the CPU."""
    if command_line() and (cores := all_cores()) < _cores_to_run_on():
        # TensorFlow has a thread for each core to run on, and the container's limit would halt them in turns.
        for kind in ("INTRAOP", "INTEROP"):
            os.environ.setdefault(f"TF_NUM_{kind}_THREADS", str(cores))
    if command_line():
        os.environ.update(_KERAS)
    # Another program may want all of Keras, and controls its own garbage collection.
    with lean_import() if command_line() else contextlib.nullcontext():
        import tensorflow as tf

        # Physical devices: several workers must not initialize TensorFlow before their strategy is made.
        devices = tf.config.list_physical_devices()
    if all(device.device_type.endswith("CPU") for device in devices):
        keep_freed_memory()
    return tf


@contextlib.contextmanager
def lean_import() -> Iterator[None]:
    """Cuts the time of the block's imports of TensorFlow, Keras and what needs them by two fifths.

    Keras imports scikit-learn, Matplotlib, pandas and IPython if they are installed, for wrappers, galleries, data
    frames and notebooks that no command has; in the block they look uninstalled. The garbage collector pauses during
    the block, and then ignores what the imports made: a million permanent objects, half a second for each collection.
    """
    unused = _Uninstalled()
    sys.meta_path.insert(0, unused)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        sys.meta_path.remove(unused)
    gc.freeze()


class _Uninstalled(importlib.abc.MetaPathFinder):
    """Makes the packages in `_UNUSED` look as if they were not installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name in _UNUSED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def all_cores() -> int:
    """How many cores this process may use: those it may run on, or fewer if its container has a limit."""
    cores = _cores_to_run_on()
    for paths in _CPU_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # No such limit, or "max".
            quota, period = map(int, " ".join(Path(path).read_text(encoding="ascii") for path in paths).split())
            if quota > 0:
                cores = min(cores, math.ceil(quota / period))
    return cores


def _cores_to_run_on() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def open_closed_streams() -> None:
    """Opens those of stdin, stdout and stderr to nothing that were closed when the program started, as by `2>&-`.

    Otherwise the next file would get the number of stderr, and whatever TensorFlow logs would be written into it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # In the order of the lowest free number.
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))


@contextlib.contextmanager
def stderr_withheld() -> Iterator[None]:
    """Withholds what the block writes to file descriptor 2; shows it if the block raises."""
    sys.stderr.flush()
    original = os.dup(2)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            os.dup2(original, 2)
            kept.seek(0)
            sys.stderr.write(kept.read().decode("utf-8", "replace"))
            raise
        finally:
            sys.stderr.flush()
            os.dup2(original, 2)
            os.close(original)
