"""What suits this machine's processor: a precision, and how many threads an op has."""

import contextlib
import dataclasses
import functools
import logging
from typing import Final, TypeVar

import tensorflow as tf

from keras_bert.config.training import RunConfig
from keras_bert.core.program import command_line
from keras_bert.core.runtime import all_cores
from keras_bert.training.cluster import worker_addresses
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.strategy import on_cpus

_log = logging.getLogger(__name__)


# Intel's servers since 2023 have both; AMD's processors since 2022 (Zen 4) have only the latter.
_FLAGS = {"amx_bf16", "avx512_bf16"}
FLOAT32: Final = "float32"
BFLOAT16: Final = "bfloat16"
_FIRST_GPUS = (8, 0)  # NVIDIA's since 2020 (Ampere).

Settings = TypeVar("Settings", bound=RunConfig)


@functools.cache
def multiplies_bfloat16(path: str = "/proc/cpuinfo") -> bool:
    """Whether the processor has instructions for products of bfloat16 (AMX or AVX-512), according to Linux."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return any(line.startswith("flags") and _FLAGS.intersection(line.split()) for line in file)
    except OSError:
        return False


def with_precision(training: Settings, run: RunFolder) -> Settings:
    """The settings of a run, `auto` precision replaced by the best for this machine, or by what the run began in."""
    if training.precision != "auto":
        return training
    recorded = run.begun_training()
    if recorded.get("precision") in (FLOAT32, BFLOAT16):
        begun = {key: recorded[key] for key in ("precision", "jit_compile") if key in recorded}
        return dataclasses.replace(training, **begun)
    gpus, on_tpu = tf.config.list_physical_devices("GPU"), training.strategy == "tpu" or _has("TPU")
    details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
    if on_tpu or gpus and all(found.get("compute_capability", (0, 0)) >= _FIRST_GPUS for found in details):
        return dataclasses.replace(training, precision=BFLOAT16)
    if not gpus and multiplies_bfloat16():
        return dataclasses.replace(training, precision=BFLOAT16, jit_compile=False)
    return dataclasses.replace(training, precision=FLOAT32)


def _has(*kinds: str) -> bool:
    return any(tf.config.list_physical_devices(kind) for kind in kinds)


def share_cores(training: RunConfig, parts: int) -> None:
    """Gives the ops of `parts` that one CPU computes side by side their share of the cores each.

    It changes nothing where there is another device or another process, or once TensorFlow has started. Nor does it in
    somebody's own program, whose other ops would be slower.
    """
    is_one = training.strategy in ("auto", "one") and len(training.devices) < 2 and not worker_addresses()
    if parts > 1 and is_one and command_line() and not _has("GPU", "TPU"):
        with contextlib.suppress(RuntimeError):
            tf.config.threading.set_intra_op_parallelism_threads(max(all_cores() // parts, 1))


def advise(strategy: tf.distribute.Strategy, training: RunConfig) -> None:
    """Logs one line if a run on a CPU would be faster in another precision."""
    if not on_cpus(strategy):
        return
    in_half, compiles = training.precision == BFLOAT16, training.jit_compile is True
    graphs = " --set training.jit_compile=false" if compiles else ""
    if not multiplies_bfloat16():
        if in_half:
            _log.info("This processor does not multiply bfloat16 (AMX, AVX-512): float32 is faster.")
    elif in_half and compiles:
        _log.info(f"XLA does not multiply in bfloat16, as this processor can. Faster:{graphs}")
    elif training.precision == FLOAT32:
        _log.info(
            "This processor multiplies bfloat16, in which a BERT-mini or larger trains 1.3 to 1.9 times as fast: "
            f"--set training.precision=bfloat16{graphs}"
        )
