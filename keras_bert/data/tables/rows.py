"""Rows of tables of every format, and the errors of reading them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from keras_bert.core.errors import UserError, nearest_name

_SHOWN_COLUMNS = 20
_SHOWN_CHARACTERS = 40


class Row(NamedTuple):
    """A row of a table.

    Attributes:
        line: the number of its first line or, in a table that has no lines, of the row.
        cells: the cells of the wanted columns, then of the optional ones, with None for missing columns.
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
    """The columns of a table to read, and how to read them.

    Attributes:
        wanted: the names of the columns; if all are numbers, a CSV or TSV has no header, and its columns are counted
            from 0.
        optional: columns that the table may lack.
        format: one of `config.corpus.TABLE_FORMATS`; None detects it from the file's name and content.
        header: the names of the columns of a CSV or TSV without a header.
        options: the command line options that name the columns, for messages; "" if a benchmark defines the columns.
        skip: function (reason, place) to call for a broken row, which is skipped; without it, the row is an error.
        optional_in_rows: whether any JSON object may lack optional columns; otherwise all objects have those of the
            first.
        advice: what to do about a missing column, for messages, if no option names the columns.
    """

    wanted: tuple[str, ...]
    optional: tuple[str, ...] = ()
    format: str | None = None
    header: tuple[str, ...] | None = None
    options: str = ""
    skip: Callable[[str, str], object] | None = None
    optional_in_rows: bool = False
    advice: str = ""

    @property
    def by_number(self) -> bool:
        """Whether the columns are given by number."""
        return self.header is None and all(name.isdecimal() for name in self.wanted)

    def broken(self, reason: str, place: str, message: str) -> None:
        """Skips a broken row, or raises `BrokenRow` with the message if rows are not skipped."""
        if self.skip is None:
            raise BrokenRow(message)
        self.skip(reason, place)

    def missing(self, where: str, columns: Sequence[str], name: str, remedy: str = "") -> UserError:
        """The error of a table without the column `name`; `remedy` is added to the advice."""
        hint = nearest_name(name.lower(), {column.lower(): repr(column[:_SHOWN_CHARACTERS]) for column in columns})
        remedy = f" Name the column with {self.options}{remedy}." if self.options else self.advice and f" {self.advice}"
        return UserError(f"{where}: needs a column {name!r}. Received: the columns {shown(columns)}.{hint}{remedy}")

    def places(self, where: str, columns: Sequence[str], remedy: str = "") -> list[int | None]:
        """The indices of the wanted, then the optional columns in `columns`; None for a missing optional one.

        Raises `UserError` if a wanted column is missing, or a column occurs more than once.
        """
        for name in (*self.wanted, *self.optional):
            if name in self.wanted and name not in columns:
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
