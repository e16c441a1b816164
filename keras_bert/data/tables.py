"""Tables row by row: CSV, TSV and JSON lines, compressed or not, every row with its line number."""

import csv
import difflib
import json
import os
from itertools import chain
from typing import NamedTuple

from keras_bert.data.text_lines import Unreadable, read_lines, read_standard_input
from keras_bert.errors import UserError

FORMATS = ("csv", "tsv", "raw_tsv", "jsonl")
_FORMAT_OF_ENDING = {
    ".csv": "csv",
    ".tsv": "raw_tsv",
    ".txt": "raw_tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
_LIKE = {"raw_tsv": ("raw_tsv", "tsv")}  # The formats of files that are called alike.
_COMPRESSED = (".gz", ".bz2", ".xz")
_SHOWN_COLUMNS = 20
_SHOWN_CHARACTERS = 40

# Whole books stand in cells; Python's own limit is 131,072 characters.
csv.field_size_limit(1 << 26)


class Row(NamedTuple):
    """One row: the line on which it begins, from 1, and the cells of the wanted columns, then of the optional ones."""

    line: int
    cells: tuple


def table_format(path):
    """The format that a file's name tells. Raises `UserError` for a name that tells none.

    `.tsv` is taken as the raw kind, as GLUE and most corpora are: a quote is a character like any other. A TSV whose
    cells are quoted as in CSV must be called "tsv" by name.
    """
    ending = plain_ending(path)
    if ending not in _FORMAT_OF_ENDING:
        raise UserError(
            f"{path}: needs a name that ends in {', '.join(_FORMAT_OF_ENDING)} (and .gz, .bz2 or .xz). "
            f"Received: {ending or 'no ending'}. Rename it, or give the format: {', '.join(FORMATS)}."
        )
    return _FORMAT_OF_ENDING[ending]


def plain_ending(path):
    """The ending of a file's name in lower case, without that of a compression: ".csv" of reviews.csv.gz."""
    stem, ending = os.path.splitext(os.fspath(path).lower())
    return os.path.splitext(stem)[1] if ending in _COMPRESSED else ending


def known_format(path, format):
    """The format of a file that comes after others of `format`: that one too, unless the file's name tells another.

    Args:
        path: the file.
        format: one of `FORMATS`, or None where all are judged by their names.
    """
    told = _FORMAT_OF_ENDING.get(plain_ending(path)) if plain_ending(path) != ".txt" else None
    return format if told is None or format in _LIKE.get(told, (told,)) else told


def read_table(path, wanted, optional=(), *, format=None, columns=None, ragged=None):
    """Iterates over the rows of a table.

    Args:
        path: the file, local or remote; .gz, .bz2 and .xz are judged by content. "-" is what comes in.
        wanted: names of the columns to hand out.
        optional: names of columns to hand out where they are there, None where not.
        format: one of `FORMATS`; judged by the file's name if None.
            "csv" and "tsv" have cells quoted as Python's csv writes them, "raw_tsv" knows no quotes, "jsonl" has one
            object a line, whose values are handed out as JSON has them.
        columns: the columns' names where the file has no header.
        ragged: a list that takes the line numbers of the rows with too few or too many cells, which are then left
            out. Without it such a row is refused.

    Yields:
        `Row`s. Blank lines are skipped. Cells are strings with the white space that they have.

    Raises:
        UserError: the file is missing, damaged, empty or not UTF-8; a column is missing; a row is broken.
    """
    format = format or table_format(path)
    if format not in FORMATS:
        raise ValueError(f"format: needs one of {', '.join(FORMATS)}. Received: {format!r}.")
    lines = _lines(path)
    if format == "jsonl":
        yield from _json_rows(path, lines, tuple(wanted), tuple(optional))
        return
    rows = _raw_rows(lines) if format == "raw_tsv" else _quoted_rows(path, lines, "," if format == "csv" else "\t")
    where = path
    first = next(rows, None)
    if first is None:
        raise UserError(f"{path}: needs a table. Received: an empty file.")
    if columns is None:
        line, header = first
        where = f"{path} line {line}"
        columns = [name.strip() for name in header]
    else:
        rows = chain([first], rows)
    places = [_place(where, columns, name) for name in wanted]
    places += [_place(where, columns, name) if name in columns else None for name in optional]
    for line, cells in rows:
        if len(cells) == len(columns):
            yield Row(line, tuple(None if place is None else cells[place] for place in places))
        elif ragged is None:
            raise UserError(_ragged(path, line, columns, cells, format))
        else:
            ragged.append(line)


def _lines(path):
    try:
        yield from read_standard_input() if path == "-" else read_lines(path)
    except Unreadable as problem:
        where = f"{path} line {problem.line}" if problem.line else path
        raise UserError(f"{where}: needs a table in UTF-8 text. Received: {problem}.") from None


def _raw_rows(lines):
    return ((number, line.split("\t")) for number, line in enumerate(lines, 1) if line)


def _quoted_rows(path, lines, delimiter):
    reader = csv.reader((line + "\n" for line in lines), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1  # A quoted cell may go on over several lines; the row is known by its first.
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            remedy = "Close every quote and double those inside a cell"
            remedy += ", or read it as raw_tsv, where quotes are no quotes." if delimiter == "\t" else "."
            raise UserError(f"{path} line {line}: needs cells quoted as in CSV. Received: {error}. {remedy}") from None
        if cells:
            yield line, cells


def _json_rows(path, lines, wanted, optional):
    keys = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path} line {number}: needs one JSON object a line. Received: {error}.") from None
        if not isinstance(values, dict):
            raise UserError(f"{path} line {number}: needs one JSON object a line. Received: {type(values).__name__}.")
        if keys is None:
            keys = wanted + tuple(name for name in optional if name in values)
        for name in keys:
            if name not in values:
                raise UserError(_missing(f"{path} line {number}", list(values), name))
        yield Row(number, tuple(values.get(name) for name in wanted + optional))
    if keys is None:
        raise UserError(f"{path}: needs one JSON object a line. Received: an empty file.")


def _place(where, columns, name):
    if name not in columns:
        raise UserError(_missing(where, columns, name))
    if columns.count(name) > 1:
        raise UserError(f"{where}: needs one column {name!r}. Received: {columns.count(name)} of that name.")
    return columns.index(name)


def _missing(where, columns, name):
    lowered = {column.lower(): column for column in columns}
    nearest = difflib.get_close_matches(name.lower(), lowered, n=1)
    hint = f" The nearest is {lowered[nearest[0]][:_SHOWN_CHARACTERS]!r}." if nearest else ""
    return f"{where}: needs a column {name!r}. Received: the columns {_shown(columns)}.{hint}"


def _shown(columns):
    shown = ", ".join(repr(column[:_SHOWN_CHARACTERS]) for column in columns[:_SHOWN_COLUMNS])
    more = len(columns) - _SHOWN_COLUMNS
    return f"{shown} and {more} more" if more > 0 else shown


def _ragged(path, line, columns, cells, format):
    hint = {
        "csv": "Quote a cell that holds a comma.",
        "tsv": "Quote a cell that holds a tab.",
        "raw_tsv": "A cell may hold neither a tab nor a line break; read a file with quoted cells as tsv.",
    }[format]
    return f"{path} line {line}: needs {len(columns)} cells ({_shown(columns)}). Received: {len(cells)}. {hint}"
