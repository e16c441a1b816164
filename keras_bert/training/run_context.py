"""The loop's surroundings: log, progress display, stop requests, checkpoint clock and out-of-memory advice."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator

import tensorflow as tf

from keras_bert.config.training import RunConfig
from keras_bert.training.checkpoint_clock import CheckpointClock
from keras_bert.training.figures_table import Column
from keras_bert.training.metrics_log import MetricsLog, NoMetricsLog
from keras_bert.training.out_of_memory import explained_out_of_memory
from keras_bert.training.processes import agreement, process_number
from keras_bert.training.progress import Progress
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.stop_request import StopRequest


@dataclasses.dataclass
class RunContext:
    """The objects that the loop reports to and asks."""

    log: MetricsLog | NoMetricsLog
    progress: Progress
    stop: StopRequest
    clock: CheckpointClock


@contextlib.contextmanager
def run_context(
    run: RunFolder,
    strategy: tf.distribute.Strategy,
    training: RunConfig,
    first_step: int,
    batch: Callable[[], tuple[str, int]],
    columns: Iterable[Column] = (),
    began: float | None = None,
) -> Iterator[RunContext]:
    """The `RunContext` of one process of a run, closed when the block ends.

    Steps that are only timed belong in the block too: they also run out of memory, and take minutes to compile.

    Args:
        run: the run's folder.
        strategy: the run's strategy.
        training: the recipe's `training` section.
        first_step: steps done before.
        batch: function () -> (key of the batch size in the recipe, batch size), for the out-of-memory message.
        columns: columns of the table; see `Progress`.
        began: when the command began, from which `training.max_minutes` counts; see `StopRequest`.
    """
    is_chief, agree = process_number(strategy) == 0, agreement(strategy)
    log = MetricsLog(run, first_step) if is_chief else NoMetricsLog()
    progress = Progress(is_chief, columns)
    try:
        with StopRequest(training.max_minutes, agree, began) as stop:
            with explained_out_of_memory(batch, strategy, training.accumulation):
                yield RunContext(log, progress, stop, CheckpointClock(training.checkpoint_minutes, agree))
    finally:
        progress.close()
        log.close()
