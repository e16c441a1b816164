"""What a person sees while a run goes on: a bar on a terminal, plain lines elsewhere."""

import sys

import tqdm


class Progress:
    """Counts steps and prints lines without tearing the bar.

    Args:
        total: steps of the whole run.
        done: steps done before this process began.
    """

    def __init__(self, total, done=0):
        self._bar = tqdm.tqdm(
            total=total, initial=done, unit="step", disable=not sys.stderr.isatty(), dynamic_ncols=True
        )

    def advance(self):
        self._bar.update()

    def line(self, text):
        self._bar.write(text)
        sys.stdout.flush()

    def close(self):
        self._bar.close()
