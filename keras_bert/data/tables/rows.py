"""Rows of tables of every format, and the errors of reading them."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from keras_bert.core.errors import UserError

_SHOWN_COLUMNS = 20
_SHOWN_CHARACTERS = 40


class Row(NamedTuple):
    """One row.

    Attributes:
        line: its first line, or its number in a table that has no lines.
        cells: those of the wanted columns, then those of the optional ones, which are None where there is none.
        within: the file and what `line` counts in it: "reviews.csv line".
    """

    line: int
    cells: tuple[Any, ...]
    within: str = "line"

    @property
    def place(self) -> str:
        """Where the row is, for messages."""
        return f"{self.within} {self.line}"


class BrokenRow(UserError):
    """An invalid row, which the reader may skip."""


@dataclass(frozen=True)
class Reading:
    """Which columns of a table are read, and how.

    Attributes:
        wanted: the names of the columns; if all are numbers, a CSV or TSV has no header, and its columns are counted
            from 0.
        optional: columns that the table may lack.
        format: of `config.corpus.TABLE_FORMATS`; None if the file's name and content tell it.
        header: the names of the columns of a CSV or TSV without a header.
        options: the options of the command line that name the columns; "" if a benchmark lays them down.
        skip: function (reason, place), called for a row to be left out. Without it such a row is refused.
        optional_in_rows: whether single JSON objects may lack the optional columns too; else all are like the first.
    """

    wanted: tuple[str, ...]
    optional: tuple[str, ...] = ()
    format: str | None = None
    header: tuple[str, ...] | None = None
    options: str = ""
    skip: Callable[[str, str], object] | None = None
    optional_in_rows: bool = False

    @property
    def by_number(self) -> bool:
        """Whether the columns are given by number."""
        return self.header is None and all(name.isdecimal() for name in self.wanted)

    def broken(self, reason: str, place: str, message: str) -> None:
        """Leaves a row out, or raises `BrokenRow` with the message."""
        if self.skip is None:
            raise BrokenRow(message)
        self.skip(reason, place)

    def missing(self, where: str, columns: Sequence[str], name: str, remedy: str = "") -> UserError:
        """The error of a table without a column of this name; `remedy` is more of what its user can do."""
        lowered = {column.lower(): column for column in columns}
        nearest = difflib.get_close_matches(name.lower(), lowered, n=1)
        hint = f" The nearest is {lowered[nearest[0]][:_SHOWN_CHARACTERS]!r}." if nearest else ""
        remedy = f" Name the column with {self.options}{remedy}." if self.options else ""
        return UserError(f"{where}: needs a column {name!r}. Received: the columns {shown(columns)}.{hint}{remedy}")

    def places(self, where: str, columns: Sequence[str], remedy: str = "") -> list[int | None]:
        """Where the wanted columns are among these, then the optional ones. Raises `UserError` as by `missing`."""
        for name in self.wanted:
            if name not in columns:
                raise self.missing(where, columns, name, remedy)
            if columns.count(name) > 1:
                raise UserError(f"{where}: needs one column {name!r}. Received: {columns.count(name)} with that name.")
        return [columns.index(name) if name in columns else None for name in (*self.wanted, *self.optional)]


def picked(cells: Sequence[Any], places: Sequence[int | None]) -> tuple[Any, ...]:
    """The cells at these places, None for no place."""
    return tuple(None if place is None else cells[place] for place in places)


def shown(columns: Sequence[str]) -> str:
    """The names of columns, for messages."""
    names = ", ".join(repr(column[:_SHOWN_CHARACTERS]) for column in columns[:_SHOWN_COLUMNS])
    more = len(columns) - _SHOWN_COLUMNS
    return f"{names} and {more} more" if more > 0 else names
