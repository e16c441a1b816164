"""CSV and its relatives: one row a line, with separators between the cells."""

import csv
import re
from collections.abc import Iterable, Iterator

from keras_bert.core.errors import UserError
from keras_bert.data.tables.rows import Reading, Row, picked, shown

CSV, SSV, TSV, RAW_TSV = DELIMITED = ("csv", "ssv", "tsv", "raw_tsv")
_SEPARATORS = {CSV: ",", SSV: ";", TSV: "\t", RAW_TSV: "\t"}
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab"}
_OF_ENDINGS = {".csv": ",", ".tsv": "\t"}
_FORMATS = f"--format {', '.join(DELIMITED[:-1])} or {RAW_TSV} (data.format)"
_OTHERS = f" Or say how the file is written: {_FORMATS}."
_NO_HEADER = f", by its number from 0 if this line is no header; if the separators are others, give {_FORMATS}"
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_QUOTED_BEGINNING = re.compile(r'"(?:[^"]|"")*"?')  # A cell may go on in the next line.
_LINE_ENDS = re.compile(r"\r\n|\r|\n")

# Cells may contain whole books; Python's default limit is 131,072 characters.
csv.field_size_limit(1 << 26)


def delimited_format(ending: str, start: str) -> str:
    """The format of a file, one of `DELIMITED`.

    The separator is the ending's if the first line contains it outside of quotes; otherwise the most frequent of tab,
    comma and semicolon there. With commas and semicolons, cells may be quoted. With tabs, a quote is an ordinary
    character, as in GLUE and most corpora, unless all cells of the first line are quoted (as R writes them), or a
    quoted cell of the first lines doubles the quotes in it (as pandas writes them).

    Args:
        ending: the ending of the file's name, such as ".csv".
        start: the beginning of the file, without white space in front.
    """
    lines = _LINE_ENDS.split(start)
    counts = _separators(lines[0])
    own = _OF_ENDINGS.get(ending, "\t")
    separator = own if counts[own] or not any(counts.values()) else max(counts, key=counts.__getitem__)
    if separator != "\t":
        return CSV if separator == "," else SSV
    return TSV if _is_quoted(lines[:-1] or lines) else RAW_TSV


def require_one_separator(path: str, start: str) -> None:
    """Raises `UserError` if the first line has several of comma, semicolon and tab.

    With a header, a wrong choice would show in the names of the columns.
    """
    counts = _separators(_LINE_ENDS.split(start, 1)[0])
    found = [f"{_NAMES[separator]}s ({count})" for separator, count in counts.items() if count]
    if len(found) > 1:
        raise UserError(
            f"{path} line 1: needs separators of one kind, as no header shows which it is. Received: "
            f"{' and '.join(found)}. Give {_FORMATS}."
        )


def _separators(line: str) -> dict[str, int]:
    """`{separator: how often it occurs outside of quotes}`."""
    return {separator: _QUOTED.sub("", line).count(separator) for separator in "\t,;"}


def _is_quoted(lines: list[str]) -> bool:
    if all(map(_QUOTED.fullmatch, lines[0].split("\t"))):
        return True
    cells = [cell for line in lines for cell in line.split("\t") if cell.startswith('"')]
    doubles = any(_QUOTED.fullmatch(cell) and '""' in cell[1:-1] for cell in cells)
    return doubles and all(map(_QUOTED_BEGINNING.fullmatch, cells))


def delimited_rows(path: str, lines: Iterable[str], format: str, reading: Reading) -> Iterator[Row]:
    """Iterates over the rows of lines without line ends. Cells are strings with their white space intact.

    Raises:
        UserError: a column is missing, quotes are wrong, or a row that is not skipped has too few or too many cells or
            is the header again.
    """
    rows: Iterator[tuple[int, list[str]]]
    if format == RAW_TSV:
        rows = ((number, line.split("\t")) for number, line in enumerate(lines, 1) if line)
    else:
        rows = _quoted_rows(path, lines, format, reading)
    within, columns = f"{path} line", reading.header
    places: list[int | None] | None = None
    header: list[str] | None = None
    for line, cells in rows:
        if places is None:
            where = f"{within} {line}"
            if reading.by_number:
                columns, places = tuple(cells), _numbered(where, cells, reading)
            elif columns is not None:
                places = reading.places(path, columns)
            else:
                header, columns = cells, tuple(name.strip() for name in cells)
                places = reading.places(where, columns, _NO_HEADER)
                continue
        assert columns is not None
        if len(cells) == len(columns) and (cells != header or len(cells) == 1):
            yield Row(line, picked(cells, places), within)
            continue
        where = f"{within} {line}"
        if cells == header:  # The file was appended; in a single column, it may be a text.
            reading.broken("the header again", where, f"{where}: needs a row. Received: the header again. Remove it.")
        else:
            reading.broken("too few or too many cells", where, _ragged(where, columns, cells, format, reading))
    if places is None:
        raise UserError(f"{path}: needs a table. Received: an empty file.")


def _numbered(where: str, cells: list[str], reading: Reading) -> list[int | None]:
    for name in reading.wanted:
        if int(name) >= len(cells):
            raise UserError(
                f"{where}: needs a column {name}, counted from 0. Received: {len(cells)} columns, {shown(cells)}. Give "
                f"another number, or the column's name in a header, with {reading.options}.{_OTHERS}"
            )
    numbers = [int(name) if name.isdecimal() else len(cells) for name in (*reading.wanted, *reading.optional)]
    return [number if number < len(cells) else None for number in numbers]


def _quoted_rows(path: str, lines: Iterable[str], format: str, reading: Reading) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader((line + "\n" for line in lines), delimiter=_SEPARATORS[format], strict=True)
    while True:
        line = reader.line_num + 1  # A quoted cell may span several lines; the row is identified by its first.
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(
                f"{path} line {line}: needs cells quoted as in CSV. Received: {error}. Close every quote and double "
                f"those inside a cell.{_OTHERS if reading.options else ''}"
            ) from None
        if cells:
            yield line, cells


def _ragged(where: str, columns: tuple[str, ...], cells: list[str], format: str, reading: Reading) -> str:
    hint = f"Quote cells that contain a {_NAMES[_SEPARATORS[format]]}."
    if format == RAW_TSV:
        hint = "A cell with tabs or line breaks needs quotes around it, and the format tsv."
    return (
        f"{where}: needs {len(columns)} cells ({shown(columns)}). Received: {len(cells)}. {hint}"
        f"{_OTHERS if reading.options else ''}"
    )
