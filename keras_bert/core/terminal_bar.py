"""A progress bar on a terminal, and none elsewhere."""

import sys
from collections.abc import Iterable

import tqdm

# A bar that does not stay appears only after this time.
_SECONDS_UNSEEN = 2.0


def terminal_bar(
    what: str, unit: str, total: int | None = None, over: Iterable | None = None, leave: bool = True
) -> tqdm.tqdm:
    """A progress bar to update or, if it is made `over` an iterable, to iterate over.

    Args:
        what: what is being done, the first words of the bar.
        unit: what is counted, in the plural.
        total: how many there are, if known.
        over: an iterable of them.
        leave: whether the bar stays on the screen at the end.
    """
    return tqdm.tqdm(
        over,
        desc=what,
        unit=f" {unit}",
        total=total,
        disable=not sys.stderr.isatty(),
        dynamic_ncols=True,
        leave=leave,
        delay=0.0 if leave else _SECONDS_UNSEEN,
    )
