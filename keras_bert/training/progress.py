"""What is printed during a run: a table of figures and, on a terminal, a progress bar below it."""

import sys
import time
from collections.abc import Iterable

import click
import tqdm

from keras_bert.training.figures_table import Column, FiguresTable


class Progress:
    """A table of a few figures, and a bar with the loss, examples per second and the time left.

    Args:
        is_shown: False for workers that print nothing.
        columns: the table's columns between the loss and the learning rate.
    """

    def __init__(self, is_shown: bool = True, columns: Iterable[Column] = ()):
        self._is_shown = is_shown
        self._has_bar = is_shown and sys.stderr.isatty()
        self._bar = tqdm.tqdm(disable=True)  # Until `start`.
        self._table = FiguresTable(columns, has_time_left=not self._has_bar)
        self._first_share = self._share = self._began = 0.0
        self._latest = ""

    def start(self, share: float) -> None:
        """Call before the first step, when the `share` (0 to 1) of the run is done: shows the bar, starts the clock."""
        self._bar = tqdm.tqdm(
            total=100.0,
            initial=100.0 * share,
            disable=not self._has_bar,
            dynamic_ncols=True,
            bar_format="{percentage:3.0f}%|{bar}| {desc}[{elapsed}<{remaining}]",
        )
        self._first_share, self._share, self._began = share, share, time.monotonic()

    def advance(self, done: int, share: float) -> None:
        """Call after every step, or loop of steps: `done` steps are the `share` (0 to 1) of the run."""
        self._share = share
        if not self._bar.disable:
            self._bar.set_description_str(f"step {done:,} {self._latest}", refresh=False)
            self._bar.update(100.0 * share - self._bar.n)

    def figures(self, done: int, figures: dict[str, float]) -> None:
        """Prints a row of the table; the bar keeps showing the loss and examples per second."""
        if "examples_per_second" in figures:
            self._latest = f"loss {figures['loss']:.3f} {figures['examples_per_second']:.1f} examples/s "
        *header, row = self._table.lines(done, self._share, self._seconds_left(), figures)
        on_terminal, is_validation = sys.stdout.isatty(), "examples_per_second" not in figures
        for line in header:
            self.line(click.style(line, dim=True) if on_terminal else line)
        self.line(click.style(row, bold=True) if on_terminal and is_validation else row)

    def _seconds_left(self) -> float | None:
        here = self._share - self._first_share
        return (time.monotonic() - self._began) * (1.0 - self._share) / here if here > 0 else None

    def line(self, text: str) -> None:
        """Prints a line above the bar."""
        if self._is_shown:
            self._bar.write(text)
            sys.stdout.flush()

    def close(self) -> None:
        self._bar.close()
