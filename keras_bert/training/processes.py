"""The processes of one run: their numbers, what they agree on, and what the chief does for all of them.

Most of these functions are collectives, which wait for the other processes: all processes must call them in the same
order.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_bert.core import files, settings
from keras_bert.core.errors import UserError
from keras_bert.training.cluster import worker_addresses
from keras_bert.training.strategy import is_multiworker

if TYPE_CHECKING:
    import keras

    from keras_bert.config.finetuning import FinetuneConfig
    from keras_bert.config.pretraining import PretrainConfig
    from keras_bert.training.run_folder import RunFolder

Result = TypeVar("Result")

# Settings in `training` that may differ from machine to machine.
_PER_PROCESS = ("tpu", "max_minutes")
_SECONDS_UNTIL_SEEN = 10.0  # A network disk may show a new file late.
_WORDS = 4  # The 16-bit words of a value that are compared.


def process_number(strategy: tf.distribute.Strategy) -> int:
    """This process's number in the run, from 0. Process 0, the chief, writes the run's files."""
    return strategy.cluster_resolver.task_id if is_multiworker(strategy) else 0


def process_count(strategy: tf.distribute.Strategy) -> int:
    """How many processes the run has."""
    return len(worker_addresses()) if is_multiworker(strategy) else 1


def agreement(strategy: tf.distribute.Strategy) -> Callable[[float], float]:
    """A collective: function (number) -> its sum over all processes of the run. `float` if there is only one."""
    if not is_multiworker(strategy):
        return float
    return lambda value: float(_sum_over_processes(strategy, [value])[0])


def gather(strategy: tf.distribute.Strategy, values: list[float]) -> np.ndarray:
    """The numbers of every process, float32 [processes, values]; all must give the same number of them."""
    rows = np.zeros([process_count(strategy), len(values)], np.float32)
    rows[process_number(strategy)] = values
    return _sum_over_processes(strategy, rows) if is_multiworker(strategy) else rows


def _sum_over_processes(strategy: tf.distribute.Strategy, values: ArrayLike) -> np.ndarray:
    """Sums an array over the processes; each passes its own."""
    per_replica = strategy.run(lambda: tf.constant(values, tf.float32))
    replicas = strategy.num_replicas_in_sync / process_count(strategy)
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica, axis=None).numpy() / np.float32(replicas)


@contextlib.contextmanager
def fail_together(agree: Callable[[float], float]) -> Iterator[None]:
    """A block that succeeds in all processes or fails in all: if one fails, the others do not wait for it forever.

    Args:
        agree: what `agreement` returns.

    Raises:
        UserError: another process failed; that one raises its own error.
    """
    try:
        yield
    except Exception:
        agree(1.0)
        raise
    if agree(0.0):
        raise UserError("Another process of this run failed; its own message says why.")


def by_chief(strategy: tf.distribute.Strategy, function: Callable[[], Result]) -> Result | None:
    """Calls `function` in the chief and returns its result; the other processes wait for it and return None.

    Raises:
        UserError: in the other processes, if the function fails in the chief.
    """
    with fail_together(agreement(strategy)):
        return function() if process_number(strategy) == 0 else None


def chief_decides(strategy: tf.distribute.Strategy, question: Callable[[], bool]) -> bool:
    """The chief's answer, in every process."""
    return agreement(strategy)(float(bool(by_chief(strategy, question)))) > 0


def claim(strategy: tf.distribute.Strategy, run: RunFolder, config: PretrainConfig | FinetuneConfig) -> None:
    """Has the chief claim the run's folder, and refuses processes that see another one.

    Raises:
        UserError: the chief cannot claim it (see `RunFolder.claim`), or the processes do not share one folder.
    """
    by_chief(strategy, lambda: run.claim(config))
    if process_count(strategy) > 1:
        require_same(strategy, run.path, folder=_content(run.config_file))


def _content(path: str) -> bytes:
    """The bytes of a file that another machine may have just written; b"" if it does not appear in time."""
    deadline = time.monotonic() + _SECONDS_UNTIL_SEEN
    while not files.exists(path):
        if time.monotonic() > deadline:
            return b""
        time.sleep(0.2)
    return files.content(path)


def require_same(strategy: tf.distribute.Strategy, folder: str, /, **values: int | bytes) -> None:
    """Refuses processes that are in different states of the run; their gradients would be summed regardless.

    Args:
        folder: the run's folder, for the message.
        **values: what must be the same in all processes, by name: a number, or bytes, whose digests are compared.

    Raises:
        UserError: in every process, naming the first value that differs.
    """
    for name, value in values.items():
        is_number = isinstance(value, int)
        content = value.to_bytes(2 * _WORDS, "little") if isinstance(value, int) else hashlib.sha256(value).digest()
        # As 16-bit numbers, which float32 sums represent exactly.
        rows = gather(strategy, np.frombuffer(content[: 2 * _WORDS], "<u2").tolist()).astype("<u2")
        other = next((index for index, row in enumerate(rows) if (row != rows[0]).any()), None)
        if other is None:
            continue
        numbers = [int.from_bytes(rows[index].tobytes(), "little") for index in (0, other)]
        shown = f" ({numbers[0]:,} in process 0, {numbers[1]:,} in process {other})" if is_number else ""
        raise UserError(
            f"{folder}: needs the same {name.replace('_', ' ')} in every process of the run. Received: different ones"
            f"{shown}. Run the same command in every process, with the same --output folder on a shared disk or in a "
            "store."
        )


def require_same_start(
    strategy: tf.distribute.Strategy,
    folder: str,
    config: PretrainConfig | FinetuneConfig,
    step: int,
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
) -> None:
    """`require_same` for what the processes have restored: settings, steps done, weights and optimizer state."""
    if process_count(strategy) == 1:
        return
    values = settings.to_mapping(config)
    for key in _PER_PROCESS:
        values["training"].pop(key)
    require_same(
        strategy,
        folder,
        settings=repr(values).encode(),
        step=step,
        weights=digest_of([*model.variables, *optimizer.variables]),
    )


def digest_of(variables: Iterable[keras.Variable | tf.Variable]) -> bytes:
    """SHA-256 of the values of the variables, in order."""
    digest = hashlib.sha256()
    for variable in variables:
        digest.update(np.ascontiguousarray(variable.numpy()).tobytes())
    return digest.digest()
