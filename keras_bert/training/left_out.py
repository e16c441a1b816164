"""Which batches a run leaves out, and which batch each step gets instead."""

from collections.abc import Iterable
from typing import NamedTuple


class LeftOut(NamedTuple):
    """From its step `first` on, counted from 0 in the phase, a phase's batches are `batches` further along."""

    phase: int
    first: int
    batches: int


def batch_number(left_out: Iterable[LeftOut], phase: int, step: int) -> int:
    """The number in its phase of the batch that step `step` of the phase, from 0, trains on."""
    return step + sum(entry.batches for entry in left_out if entry.phase == phase and entry.first <= step)


def next_gap(left_out: Iterable[LeftOut], phase: int, step: int) -> int | None:
    """The first later step of the phase whose batch does not follow that of the step before it; None without one."""
    return min((entry.first for entry in left_out if entry.phase == phase and entry.first > step), default=None)
