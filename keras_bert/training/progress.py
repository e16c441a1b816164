"""What a person sees while a run goes on: a table of figures and, on a terminal, a bar below it."""

import sys
import time

import click
import tqdm

from keras_bert.training.figures_table import FiguresTable


class Progress:
    """A table of a few figures, and a bar with the loss, the examples a second and the time left.

    Args:
        share: of the whole run, what was done before this process began.
        is_shown: False for the workers that print nothing.
        columns: the `Column`s of the table that are of what is learned.
    """

    def __init__(self, share=0.0, is_shown=True, columns=()):
        self._is_shown = is_shown
        has_bar = is_shown and sys.stderr.isatty()
        self._bar = tqdm.tqdm(
            total=100.0,
            initial=100.0 * share,
            disable=not has_bar,
            dynamic_ncols=True,
            bar_format="{percentage:3.0f}%|{bar}| {desc}[{elapsed}<{remaining}]",
        )
        self._table = FiguresTable(columns, has_time_left=not has_bar)
        self._first_share, self._share, self._began = share, share, time.monotonic()
        self._latest = ""

    def advance(self, done, share):
        """After every step, or loop of steps: `done` steps are the `share` (0 to 1) of the run."""
        self._share = share
        if not self._bar.disable:
            self._bar.set_description_str(f"step {done:,} {self._latest}", refresh=False)
            self._bar.update(100.0 * share - self._bar.n)

    def figures(self, done, figures):
        """A row of the table from `{name: number}`; the bar keeps the loss and the examples a second."""
        if "examples_per_second" in figures:
            self._latest = f"loss {figures['loss']:.3f} {figures['examples_per_second']:.1f} examples/s "
        *header, row = self._table.lines(done, self._share, self._seconds_left(), figures)
        on_terminal, is_validation = sys.stdout.isatty(), "examples_per_second" not in figures
        for line in header:
            self.line(click.style(line, dim=True) if on_terminal else line)
        self.line(click.style(row, bold=True) if on_terminal and is_validation else row)

    def _seconds_left(self):
        here = self._share - self._first_share
        return (time.monotonic() - self._began) * (1.0 - self._share) / here if here > 0 else None

    def line(self, text):
        if self._is_shown:
            self._bar.write(text)
            sys.stdout.flush()

    def close(self):
        self._bar.close()
