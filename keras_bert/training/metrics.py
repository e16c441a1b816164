"""Adds up the sums and counts of many steps, and computes the figures that are logged and shown."""

import concurrent.futures
import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tqdm


class MetricSums:
    """Adds up what `Step` and `StepLoop` return; values stay on the device until they are read.

    Args:
        begun: `totals` of earlier steps, to include in the next figures; None for none.
    """

    def __init__(self, terms: Sequence[str], begun: Mapping[str, Any] | None = None):
        self._terms = terms
        self._results = [begun] if begun else []

    def add(self, result: Mapping[str, Any]) -> None:
        """Adds what `Step.train`, `Step.evaluate` or `StepLoop.train` returned."""
        self._results.append(result)

    def __len__(self) -> int:
        """How many steps were added since the last `take`."""
        return sum(result.get("steps", 1) for result in self._results)

    def _steps(self) -> Iterator[Mapping[str, Any]]:
        for result in self._results:
            yield from each_step(result)

    def first_not_finite(self) -> int | None:
        """The index, counted from the last `take`, of the first step whose loss or gradient is not finite; or None.

        A step that `LossScale` skipped does not count: it changed no weight.
        """
        for index, step in enumerate(self._steps()):
            is_finite = np.isfinite(float(step.get("grad_norm", 0.0))) and self._has_finite_loss(step)
            if not is_finite and not float(step.get("was_skipped", 0.0)):
                return index
        return None

    def take(self) -> dict[str, float]:
        """The figures over everything added since the last call, as plain floats, in reading order.

        `loss` is the total of the terms' losses. Each metric follows as `<term>_<metric>`, or as one name if term and
        metric have the same name.
        """
        steps = list(self._steps())
        assert steps, "Nothing was added since the last call."
        totals = _total(self._counted(steps) or steps)
        self._results = []
        # A count of 0 has a sum of 0. Counts may be sums of weights, so they can lie between 0 and 1.
        means = {
            (term, name): value / (totals["counts"][term] or 1.0)
            for term, metrics in totals["sums"].items()
            for name, value in metrics.items()
        }
        figures = {name if term == name else f"{term}_{name}": value for (term, name), value in means.items()}
        return {"loss": sum(means[term, "loss"] for term in self._terms), **figures}

    def totals(self) -> dict[str, dict[str, Any]] | None:
        """The sums and counts of everything added since the last `take`, as plain floats; None if there is nothing.

        `{"sums": {term: {metric: float}}, "counts": {term: float}}`. Steps are added one by one, so that continuing
        from saved totals gives the same floats as never stopping.
        """
        steps = self._counted(self._steps())
        return _total(steps) if steps else None

    def _counted(self, steps: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The steps whose losses enter the figures: not those that `LossScale` skipped with a loss of inf or NaN."""
        return [step for step in steps if not float(step.get("was_skipped", 0.0)) or self._has_finite_loss(step)]

    def _has_finite_loss(self, step: Mapping[str, Any]) -> bool:
        return bool(np.isfinite([float(step["sums"][term]["loss"]) for term in self._terms]).all())


def _total(steps: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    sums: dict[str, dict[str, float]] = {}
    counts: dict[str, float] = {}
    for step in steps:
        for term, metrics in step["sums"].items():
            counts[term] = counts.get(term, 0.0) + float(step["counts"][term])
            term_sums = sums.setdefault(term, {})
            for name, value in metrics.items():
                term_sums[name] = term_sums.get(name, 0.0) + float(value)
    return {"sums": sums, "counts": counts}


def each_step(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Splits what `Step` (one step) or `StepLoop` (values stacked over steps) returned into one result per step."""
    if "steps" not in result:
        return [result]
    values = _in_memory({name: value for name, value in result.items() if name != "steps"})
    return [_at(values, step) for step in range(result["steps"])]


def _in_memory(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _in_memory(value) if isinstance(value, dict) else np.asarray(value) for name, value in values.items()}


def _at(values: Mapping[str, Any], index: int) -> dict[str, Any]:
    return {name: _at(value, index) if isinstance(value, dict) else value[index] for name, value in values.items()}


class Throughput:
    """Measures examples and tokens per second, wall and CPU seconds, and the share of time spent waiting for data.

    An accelerator still computes a step after the call has returned. Until the step is done, fetching the next batch
    costs nothing, so a wait counts from the end of the previous step, which a second thread watches for. Waits inside a
    `StepLoop` cannot be measured, so it has no such share.
    """

    def __init__(self) -> None:
        self._watch = concurrent.futures.ThreadPoolExecutor(max_workers=1)
        self._step_end: concurrent.futures.Future[float] | None = None
        self._reset()

    def _reset(self) -> None:
        self._started_at, self._cpu_started_at = time.perf_counter(), time.process_time()
        self._paused = self._cpu_paused = 0.0
        self._waits: list[tuple[float, float, concurrent.futures.Future[float] | None]] = []
        self._seen: list[Mapping[str, Any]] = []

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """A block that waits for a batch."""
        started_at = time.perf_counter()
        yield
        self._waits.append((started_at, time.perf_counter(), self._step_end))

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """A block that is neither training nor waiting: validation and checkpoints."""
        if self._step_end:  # A step that is still running counts as training.
            self._step_end.result()
        started_at, cpu_started_at = time.perf_counter(), time.process_time()
        yield
        self._paused += time.perf_counter() - started_at
        self._cpu_paused += time.process_time() - cpu_started_at

    def add(self, result: Mapping[str, Any]) -> None:
        """Adds what `Step.train` or `StepLoop.train` returned."""
        self._seen.append(result)
        self._step_end = self._watch.submit(_time_when_known, result["grad_norm"])

    def take(self) -> dict[str, float]:
        """The figures since the last call; `cpu_seconds` is this process's own time, over all cores."""
        # Reading the counts waits for steps that are still running, so it has to come before reading the clock.
        steps = [step for result in self._seen for step in each_step(result)]
        examples = sum(int(step["examples"]) for step in steps)
        tokens = sum(int(step["tokens"]) for step in steps)
        elapsed = time.perf_counter() - self._started_at - self._paused
        waited = sum(
            max(end - max(started_at, step_end.result() if step_end else started_at), 0.0)
            for started_at, end, step_end in self._waits
        )
        cpu_seconds = time.process_time() - self._cpu_started_at - self._cpu_paused
        figures = {
            "seconds": elapsed,
            "cpu_seconds": cpu_seconds,
            "examples_per_second": examples / elapsed,
            "tokens_per_second": tokens / elapsed,
        }
        if not any("steps" in result for result in self._seen):
            figures["data_wait_fraction"] = waited / elapsed
        self._reset()
        return figures


def _time_when_known(value: Any) -> float:
    np.asarray(value)
    return time.perf_counter()


def perplexity(nats: float) -> float:
    """exp of a mean loss; infinite if that overflows."""
    return math.exp(nats) if nats < 700 else math.inf


_ROWS_A_HEADER = 20
_GAP = "  "


class Column(NamedTuple):
    """A column of a `FiguresTable`.

    Attributes:
        heading: its heading.
        figure: the name of its figure; validation figures have this name with the prefix `eval_`.
        text: formats the figure.
    """

    heading: str
    figure: str
    text: Callable[[float], str]


class FiguresTable:
    """A table that grows by one row of training or validation figures at a time.

    Args:
        columns: the columns between the loss and the learning rate.
        has_time_left: whether to show a column with the time left.
    """

    def __init__(self, columns: Iterable[Column] = (), has_time_left: bool = True):
        self._columns = [
            Column("loss", "loss", "{:.4f}".format),
            *columns,
            Column("rate", "learning_rate", "{:.2e}".format),
            Column("examples/s", "examples_per_second", lambda value: f"{value:,.{0 if value >= 100 else 1}f}"),
        ]
        self._has_time_left = has_time_left
        # Wide enough for most values; a wider one shifts the columns after it.
        headings = [" " * 5 + "step", "done", *["    left"] * has_time_left, *(name for name, _, _ in self._columns)]
        self._headings = [heading.rjust(8) if heading in ("loss", "rate") else heading for heading in headings]
        self._rows = 0

    def lines(self, done: int, share: float, seconds_left: float | None, figures: dict[str, float]) -> Iterator[str]:
        """Yields the lines to print for one row: the row itself and, every 20 rows, the header before it.

        Args:
            share: the share of the run that is done, 0 to 1.
            seconds_left: to the end of the run; None if unknown.
            figures: `{name: number}` of training, or of validation with names that start with `eval_`.
        """
        if self._rows % _ROWS_A_HEADER == 0:
            yield self._line(heading.strip() for heading in self._headings)
        self._rows += 1
        is_validation = any(name.startswith("eval_") for name in figures)
        prefix = "eval_" if is_validation else ""
        cells = [f"{done:,}", f"{share:.0%}"]
        if self._has_time_left:
            cells.append("" if seconds_left is None else tqdm.tqdm.format_interval(seconds_left))
        for column in self._columns:
            value = figures.get(prefix + column.figure)
            cells.append("" if value is None else column.text(value))
        if is_validation:  # Validation has no speed to show.
            cells[-1] = "validation"
        yield self._line(cells)

    def _line(self, cells: Iterable[str]) -> str:
        return _GAP.join(cell.rjust(len(heading)) for cell, heading in zip(cells, self._headings)).rstrip()
