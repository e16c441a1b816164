"""The loop's surroundings: log, progress display, stop requests, checkpoint clock and out-of-memory advice."""

import contextlib
import dataclasses
import importlib
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

import click
import keras
import tensorflow as tf
import tqdm

from keras_bert.config.training import RunConfig
from keras_bert.core.errors import UserError
from keras_bert.core.terminal_bar import draws_bars, in_notebook
from keras_bert.training.callbacks import Callbacks
from keras_bert.training.goodput import Goodput
from keras_bert.training.memory import explained_out_of_memory
from keras_bert.training.metrics import Column, FiguresTable
from keras_bert.training.metrics_log import MetricsLog, NoMetricsLog, read_metrics
from keras_bert.training.processes import agreement, process_count, process_number
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.run_loggers import open_loggers
from keras_bert.training.stop_request import StopRequest

_log = logging.getLogger(__name__)


class CheckpointClock:
    """The time since the last checkpoint, or since this object was created.

    Args:
        minutes: time between checkpoints; 0 for never.
        agree: sums a number over all processes (see `processes.agreement`), so that all of them save at the same step
            as soon as one of their clocks says so.
    """

    def __init__(self, minutes: float = 0.0, agree: Callable[[float], float] = float):
        self._seconds = 60.0 * minutes if minutes else float("inf")
        self._agree = agree
        self.saved()

    def saved(self) -> None:
        """Call after every checkpoint."""
        self._last = time.monotonic()

    def is_due(self) -> bool:
        """Whether a checkpoint is due. A collective: every process must call it after the same steps."""
        return self._agree(time.monotonic() - self._last >= self._seconds) > 0


class Progress:
    """A table of a few figures, and a bar with the loss, examples per second and the time left.

    Args:
        is_shown: False for workers that print nothing.
        columns: the table's columns between the loss and the learning rate.
    """

    def __init__(self, is_shown: bool = True, columns: Iterable[Column] = ()):
        self._is_shown = is_shown
        self._has_bar = is_shown and draws_bars()
        self._bar = tqdm.tqdm(disable=True)  # Until `start`.
        self._table = FiguresTable(columns, has_time_left=not self._has_bar)
        self._first_share = self._share = self._started_at = 0.0
        self._latest = ""

    def start(self, share: float) -> None:
        """Call before the first step, when the `share` (0 to 1) of the run is done: shows the bar, starts the clock."""
        # tqdm.auto looks for a notebook's widgets when it is imported.
        self._bar = importlib.import_module("tqdm.auto" if in_notebook() else "tqdm").tqdm(
            total=100.0,
            initial=100.0 * share,
            disable=not self._has_bar,
            dynamic_ncols=True,
            bar_format="{percentage:3.0f}%|{bar}| {desc}[{elapsed}<{remaining}]",
        )
        self._first_share, self._share, self._started_at = share, share, time.monotonic()

    def advance(self, done: int, share: float) -> None:
        """Call after every step, or loop of steps: `done` steps are the `share` (0 to 1) of the run."""
        self._share = share
        if not self._bar.disable:
            self._bar.set_description_str(f"step {done:,} {self._latest}", refresh=False)
            self._bar.update(100.0 * share - self._bar.n)

    def figures(self, done: int, figures: dict[str, float]) -> None:
        """Logs a row of the table; the bar keeps showing the loss and examples per second."""
        if "examples_per_second" in figures:
            self._latest = f"loss {figures['loss']:.3f} {figures['examples_per_second']:.1f} examples/s "
        *header, row = self._table.lines(done, self._share, self._seconds_left(), figures)
        on_terminal, is_validation = sys.stdout.isatty(), "examples_per_second" not in figures
        for line in header:
            _log.info(click.style(line, dim=True) if on_terminal else line)
        _log.info(click.style(row, bold=True) if on_terminal and is_validation else row)

    def _seconds_left(self) -> float | None:
        here = self._share - self._first_share
        return (time.monotonic() - self._started_at) * (1.0 - self._share) / here if here > 0 else None

    def close(self) -> None:
        self._bar.close()


@dataclasses.dataclass
class RunContext:
    """The objects that the loop reports to or asks."""

    log: MetricsLog | NoMetricsLog
    progress: Progress
    stop: StopRequest
    clock: CheckpointClock
    callbacks: Callbacks = dataclasses.field(default_factory=Callbacks)
    goodput: Goodput = dataclasses.field(default_factory=Goodput)


@contextlib.contextmanager
def run_context(
    run: RunFolder,
    strategy: tf.distribute.Strategy,
    training: RunConfig,
    first_step: int,
    batch: Callable[[], tuple[str, int]],
    charts: Mapping[str, str],
    columns: Iterable[Column] = (),
    started_at: float | None = None,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    began_at: float | None = None,
) -> Iterator[RunContext]:
    """The `RunContext` of one process of a run, closed when the block ends.

    Steps that are only timed belong in the block too: they may run out of memory, or take minutes to compile.

    Args:
        first_step: steps done before.
        batch: function () -> (key of the batch size in the recipe, batch size), for the out-of-memory message.
        charts: `{title: figure}` of the run's own charts on one page; see `TensorBoardLogger`.
        columns: columns of the table; see `Progress`.
        started_at: when the command began, from which `training.max_minutes` counts; see `StopRequest`.
        callbacks: see `Callbacks`.
        began_at: when this run of the command began, for its `Goodput`; None for `started_at`.

    Raises:
        UserError: there are callbacks, and the run has several processes, which would not stop together.
    """
    called = Callbacks(callbacks)
    if called and process_count(strategy) > 1:
        raise UserError(
            f"callbacks: need a run of one process. Received: {process_count(strategy)} processes. Leave them out."
        )
    is_chief, agree = process_number(strategy) == 0, agreement(strategy)
    # Before the log is opened, which drops the lines of steps that are done again.
    goodput = Goodput(read_metrics(run.metrics_file) if is_chief else (), first_step, began_at or started_at)
    log = MetricsLog(run, first_step, open_loggers(run, training, charts)) if is_chief else NoMetricsLog()
    progress, is_whole = Progress(is_chief, columns), False
    try:
        with StopRequest(training.max_minutes, agree, started_at) as stop:
            with explained_out_of_memory(batch, strategy, training.slices):
                clock = CheckpointClock(training.checkpoint_minutes, agree)
                yield RunContext(log, progress, stop, clock, called, goodput)
        is_whole = True
    finally:
        progress.close()
        log.close(is_whole)
