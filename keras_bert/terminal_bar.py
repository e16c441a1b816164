"""A bar for what takes long, on a terminal; nothing where nobody looks."""

import sys

import tqdm

# What takes less leaves no trace.
_SECONDS_UNSEEN = 2.0


def terminal_bar(what, unit, total=None, over=None, leave=True):
    """A `tqdm.tqdm`, to be updated or, where it is made `over` an iterable, to be iterated over.

    Args:
        what: what is done, the bar's first words.
        unit: what is counted, in the plural.
        total: how many there are, where that is known.
        over: an iterable of them.
        leave: whether the bar stays to be seen when all is done.
    """
    return tqdm.tqdm(
        over, desc=what, unit=f" {unit}", total=total, disable=not sys.stderr.isatty(), dynamic_ncols=True,
        leave=leave, delay=0.0 if leave else _SECONDS_UNSEEN,
    )  # fmt: skip
