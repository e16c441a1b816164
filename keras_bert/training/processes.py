"""The processes of one run: their numbers, what they agree on, and what one of them does for all.

Every process calls these functions in the same order: each is a collective, which waits for the others.
"""

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
import tensorflow as tf

from keras_bert import files, settings
from keras_bert.errors import UserError
from keras_bert.training.strategy import is_multiworker, tf_config_workers

Result = TypeVar("Result")

# Settings of `training` that each machine may have its own of.
_OF_ONE_PROCESS = ("devices", "tpu", "max_minutes")
_SECONDS_UNTIL_SEEN = 10.0  # A network disk may show a new file late.
_WORDS = 4  # Of 16 bits each, in what is compared.


def process_number(strategy: tf.distribute.Strategy) -> int:
    """This process's number among those of the run, from 0; number 0, the chief, writes the run's files."""
    return strategy.cluster_resolver.task_id if is_multiworker(strategy) else 0


def process_count(strategy: tf.distribute.Strategy) -> int:
    """How many processes the run has."""
    return len(tf_config_workers()) if is_multiworker(strategy) else 1


def agreement(strategy: tf.distribute.Strategy) -> Callable[[float], float]:
    """Function (number) -> its sum over all processes of the run: `float` where there is one."""
    if not is_multiworker(strategy):
        return float
    return lambda value: float(_sum_over_processes(strategy, [value])[0])


def gather(strategy: tf.distribute.Strategy, values: list[float]) -> np.ndarray:
    """[processes, values] float32: the numbers that every process gives, as many each."""
    rows = np.zeros([process_count(strategy), len(values)], np.float32)
    rows[process_number(strategy)] = values
    return _sum_over_processes(strategy, rows) if is_multiworker(strategy) else rows


def _sum_over_processes(strategy, values):
    """The sum over the processes of an array, which each gives its own of."""
    per_replica = strategy.run(lambda: tf.constant(values, tf.float32))
    replicas = strategy.num_replicas_in_sync / process_count(strategy)
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica, axis=None).numpy() / np.float32(replicas)


@contextlib.contextmanager
def failing_together(agree: Callable[[float], float]) -> Iterator[None]:
    """A block that ends in all processes or in none: where one fails, the others do not wait for it without end.

    Args:
        agree: what `agreement` gives.

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
    """What `function` returns in the chief, which alone calls it; None in the others, which wait until it is done.

    Raises:
        UserError: in the others, where it fails in the chief.
    """
    with failing_together(agreement(strategy)):
        return function() if process_number(strategy) == 0 else None


def chief_says(strategy: tf.distribute.Strategy, question: Callable[[], bool]) -> bool:
    """The chief's answer, in every process."""
    return agreement(strategy)(float(bool(by_chief(strategy, question)))) > 0


def settle(strategy, run, config, report):
    """Has the chief settle a `RunFolder`, and refuses processes that do not find it: it must be one folder for all."""
    by_chief(strategy, lambda: run.settle(config, report))
    if process_count(strategy) > 1:
        require_same(strategy, run.path, folder=_content(run.config_file))


def _content(path):
    """The bytes of a file that another machine wrote just now; b"" where it does not show up."""
    deadline = time.monotonic() + _SECONDS_UNTIL_SEEN
    while not files.exists(path):
        if time.monotonic() > deadline:
            return b""
        time.sleep(0.2)
    with files.open_file(path) as stream:
        return stream.read()


def require_same(strategy: tf.distribute.Strategy, folder: str, /, **of_process: int | bytes) -> None:
    """Refuses processes that are not at the same place of one run: their gradients would be summed all the same.

    Args:
        folder: the run's folder, to be named.
        of_process: what must be the same, by its name: a number, or bytes of which a digest is compared.

    Raises:
        UserError: in every process, naming the first that differs.
    """
    for name, value in of_process.items():
        is_number = isinstance(value, int)
        content = value.to_bytes(2 * _WORDS, "little") if is_number else hashlib.sha256(value).digest()
        # Numbers of 16 bits, which a sum of float32 keeps as they are.
        rows = gather(strategy, np.frombuffer(content[: 2 * _WORDS], "<u2").tolist()).astype("<u2")
        other = next((index for index, row in enumerate(rows) if (row != rows[0]).any()), None)
        if other is None:
            continue
        numbers = [int.from_bytes(rows[index].tobytes(), "little") for index in (0, other)]
        shown = f" ({numbers[0]:,} in process 0, {numbers[1]:,} in process {other})" if is_number else ""
        raise UserError(
            f"{folder}: needs the same {name.replace('_', ' ')} in every process of the run. Received: different ones"
            f"{shown}. Give every process the same command, and an --output that is one folder for all of them: on a "
            "shared disk or in a store."
        )


def require_same_start(strategy, folder, config, step, model, optimizer):
    """`require_same` of what the processes of a run have restored: settings, steps done, weights and moments."""
    if process_count(strategy) == 1:
        return
    values = settings.to_mapping(config)
    for key in _OF_ONE_PROCESS:
        values["training"].pop(key)
    require_same(
        strategy, folder, settings=repr(values).encode(), step=step,
        weights=digest_of([*model.variables, *optimizer.variables]),
    )  # fmt: skip


def digest_of(variables: Iterable[tf.Variable]) -> bytes:
    """SHA-256 of the values of variables, in order."""
    digest = hashlib.sha256()
    for variable in variables:
        digest.update(np.ascontiguousarray(variable.numpy()).tobytes())
    return digest.digest()
