"""What surrounds the loop: figures written down, progress shown, clocks, requests to stop, memory that ran out."""

import contextlib
import dataclasses

from keras_bert.training.checkpoint_clock import CheckpointClock
from keras_bert.training.metrics_log import MetricsLog, NoMetricsLog
from keras_bert.training.out_of_memory import explained_out_of_memory
from keras_bert.training.processes import agreement, process_number
from keras_bert.training.progress import Progress
from keras_bert.training.stop_request import StopRequest


@dataclasses.dataclass
class Surroundings:
    """A `MetricsLog` (or `NoMetricsLog`), a `Progress`, a `StopRequest` and a `CheckpointClock`."""

    log: MetricsLog
    progress: Progress
    stop: StopRequest
    clock: CheckpointClock


@contextlib.contextmanager
def surroundings(run, strategy, training, budget, first_step, batch, columns=()):
    """The `Surroundings` of one process of a run, closed when the block ends.

    Args:
        run: the `RunFolder`.
        strategy: the run's `tf.distribute.Strategy`.
        training: its `RunConfig`.
        budget: its `StepBudget` or `TimeBudget`.
        first_step: steps done before.
        batch: function () -> (key of the batch size in the recipe, the batch size), for when memory runs out.
        columns: of the table that is shown; see `Progress`.
    """
    is_chief, agree = process_number(strategy) == 0, agreement(strategy)
    log = MetricsLog(run, first_step) if is_chief else NoMetricsLog()
    progress = Progress(budget.share_done(first_step), is_chief, columns)
    try:
        with StopRequest(training.max_minutes, agree) as stop:
            with explained_out_of_memory(batch, strategy, training.accumulation):
                yield Surroundings(log, progress, stop, CheckpointClock(training.checkpoint_minutes, agree))
    finally:
        progress.close()
        log.close()
