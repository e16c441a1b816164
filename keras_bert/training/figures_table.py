"""The figures of a run that fit on one line of a terminal; metrics.jsonl and TensorBoard have all of them."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import tqdm

_ROWS_A_HEADER = 20
_GAP = "  "


class Column(NamedTuple):
    """One column between the loss and the learning rate.

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
            done: steps done.
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
