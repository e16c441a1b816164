"""Changes of a text, and where they move a part of it."""

import bisect
import itertools
from collections.abc import Sequence
from typing import NamedTuple


class Edit(NamedTuple):
    """What stands from `start` to `end`, in code points, is replaced by `text`; `start == end` inserts it there."""

    start: int
    end: int
    text: str


class EditedText:
    """A text after some edits.

    Args:
        before: the original text.
        edits: in the order of the text, none overlapping another.

    Attributes:
        text: the text after them.
    """

    text: str

    def __init__(self, before: str, edits: Sequence[Edit]):
        places = [0, *itertools.chain.from_iterable((edit.start, edit.end) for edit in edits), len(before)]
        kept = [before[start:end] for start, end in zip(places[::2], places[1::2])]
        self.text = kept[0] + "".join(edit.text + after for edit, after in zip(edits, kept[1:]))
        self._edits = edits
        self._starts, self._ends = [edit.start for edit in edits], [edit.end for edit in edits]
        growth = (len(edit.text) - (edit.end - edit.start) for edit in edits)
        self._moved = list(itertools.accumulate(growth, initial=0))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where the part from `start` to `end` is now.

        An edit across one of its ends is inside of it as a whole; what is inserted belongs to the character before.
        """
        before = bisect.bisect_right(self._ends, start)
        first = start + self._moved[before]
        if before < len(self._edits) and self._starts[before] < start:
            first = self._starts[before] + self._moved[before]
        through = bisect.bisect_right(self._ends, end)
        last = end + self._moved[through]
        if through < len(self._edits) and self._starts[through] < end:
            last = self._ends[through] + self._moved[through + 1]
        return first, max(first, last)
