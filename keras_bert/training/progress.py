"""What a person sees while a run goes on: a bar on a terminal, plain lines elsewhere."""

import sys

import tqdm


class Progress:
    """Counts steps and prints lines without tearing the bar.

    Args:
        total: steps of the whole run.
        done: steps done before this process began.
        is_shown: False for the workers that print nothing.
    """

    def __init__(self, total, done=0, is_shown=True):
        self._is_shown = is_shown
        has_bar = is_shown and sys.stderr.isatty()
        self._bar = tqdm.tqdm(total=total, initial=done, unit="step", disable=not has_bar, dynamic_ncols=True)

    def advance(self):
        self._bar.update()

    def line(self, text):
        if self._is_shown:
            self._bar.write(text)
            sys.stdout.flush()

    def close(self):
        self._bar.close()
