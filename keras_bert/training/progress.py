"""What a person sees while a run goes on: a bar on a terminal, plain lines elsewhere."""

import sys

import tqdm


class Progress:
    """A bar with the loss, the examples a second and the time left, and lines that do not tear it.

    Args:
        share: of the whole run, what was done before this process began.
        is_shown: False for the workers that print nothing.
    """

    def __init__(self, share=0.0, is_shown=True):
        self._is_shown = is_shown
        has_bar = is_shown and sys.stderr.isatty()
        self._bar = tqdm.tqdm(
            total=100.0,
            initial=100.0 * share,
            disable=not has_bar,
            dynamic_ncols=True,
            bar_format="{percentage:3.0f}%|{bar}| {desc}[{elapsed}<{remaining}]",
        )
        self._share, self._latest = share, ""

    def advance(self, done, share):
        """After every step: `done` steps are the `share` (0 to 1) of the run."""
        self._share = share
        if not self._bar.disable:
            self._bar.set_description_str(f"step {done:,} {self._latest}", refresh=False)
            self._bar.update(100.0 * share - self._bar.n)

    def figures(self, done, figures):
        """A line of figures (`{name: number}`); the bar keeps the loss and the examples a second."""
        if "examples_per_second" in figures:
            self._latest = f"loss {figures['loss']:.3f} {figures['examples_per_second']:.1f} examples/s "
        shown = "  ".join(f"{name} {value:.4g}" for name, value in figures.items())
        self.line(f"step {done} ({self._share:.0%})  {shown}")

    def line(self, text):
        if self._is_shown:
            self._bar.write(text)
            sys.stdout.flush()

    def close(self):
        self._bar.close()
