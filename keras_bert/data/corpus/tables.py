"""Tables row by row: CSV, TSV and JSON lines, compressed or not, every row with its line number.

A corpus also reads Parquet.
"""

import csv
import difflib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from keras_bert.config.corpus import SKIP, CorpusConfig
from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.text_lines import (
    COMPRESSED,
    Unreadable,
    decoded_document,
    read_lines,
    read_standard_input,
    stripped_document,
)
from keras_bert.errors import UserError
from keras_bert.extras import import_extra
from keras_bert.files import open_file

FORMATS = ("csv", "tsv", "raw_tsv", "jsonl")
_FORMAT_OF_ENDING = {
    ".csv": "csv",
    ".tsv": "raw_tsv",
    ".txt": "raw_tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
_LIKE = {"raw_tsv": ("raw_tsv", "tsv")}  # The formats that share a file name ending.
_SHOWN_COLUMNS = 20
_ROWS_AT_ONCE = 1024
_SHOWN_CHARACTERS = 40

# Cells may contain whole books; Python's default limit is 131,072 characters.
csv.field_size_limit(1 << 26)


class MissingColumn(UserError):
    """A table has no column of that name."""


class RaggedRow(UserError):
    """A row has too few or too many cells."""


class Row(NamedTuple):
    """One row: its first line, counted from 1, and the cells of the wanted columns, then of the optional ones."""

    line: int
    cells: tuple[Any, ...]


def table_format(path: str) -> str:
    """The format implied by a file's name. Raises `UserError` if the name implies none.

    `.tsv` means raw TSV, as in GLUE and most corpora, where a quote is an ordinary character. For a TSV with cells
    quoted as in CSV, the format "tsv" must be given explicitly.
    """
    ending = plain_ending(path)
    if ending not in _FORMAT_OF_ENDING:
        raise UserError(
            f"{path}: needs a name that ends in {', '.join(_FORMAT_OF_ENDING)} (then also {', '.join(COMPRESSED)}). "
            f"Received: {ending or 'no ending'}. Rename it, or give the format: {', '.join(FORMATS)}."
        )
    return _FORMAT_OF_ENDING[ending]


def plain_ending(path: str | os.PathLike[str]) -> str:
    """The ending of a file's name in lower case, without that of a compression: ".csv" for reviews.csv.gz."""
    stem, ending = os.path.splitext(os.fspath(path).lower())
    return os.path.splitext(stem)[1] if ending in COMPRESSED else ending


def known_format(path: str, format: str | None) -> str | None:
    """The format of a file used together with others of `format`: the same, unless its name implies another.

    Args:
        path: the file.
        format: one of `FORMATS`, or None if the names decide.
    """
    told = _FORMAT_OF_ENDING.get(plain_ending(path)) if plain_ending(path) != ".txt" else None
    return format if told is None or format in _LIKE.get(told, (told,)) else told


def read_table(
    path: str,
    wanted: Sequence[str],
    optional: Sequence[str] = (),
    *,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    ragged: list[int] | None = None,
) -> Iterator[Row]:
    """Iterates over the rows of a table.

    Args:
        path: the file, local or remote; .gz, .bz2, .xz and .zst are detected from the content. "-" is stdin.
        wanted: names of the columns to return.
        optional: names of columns to return if they exist; their cells are None if not.
        format: one of `FORMATS`; None goes by the file's name. "csv" and "tsv" have cells quoted as by Python's csv,
            "raw_tsv" has no quotes, "jsonl" has one object per line, whose values are returned as parsed.
        columns: the names of the columns, if the file has no header.
        ragged: collects the line numbers of rows with too few or too many cells, which are then skipped. Without it
            such a row is an error.

    Yields:
        The rows, without blank lines. Cells are strings with their white space intact.

    Raises:
        UserError: the file is missing, damaged, empty or not UTF-8; a column is missing; a row is malformed.
    """
    format = format or table_format(path)
    if format not in FORMATS:
        raise ValueError(f"format: needs one of {', '.join(FORMATS)}. Received: {format!r}.")
    yield from _rows(path, _lines(path), wanted, optional, format, columns, ragged)


def _rows(
    path: str,
    lines: Iterable[str],
    wanted: Sequence[str],
    optional: Sequence[str],
    format: str,
    columns: Sequence[str] | None,
    ragged: list[int] | None,
) -> Iterator[Row]:
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
    places: list[int | None] = [_place(where, columns, name) for name in wanted]
    places += [_place(where, columns, name) if name in columns else None for name in optional]
    for line, cells in rows:
        if len(cells) == len(columns):
            yield Row(line, tuple(None if place is None else cells[place] for place in places))
        elif ragged is None:
            raise RaggedRow(_ragged(path, line, columns, cells, format))
        else:
            ragged.append(line)


def table_documents(
    lines: Iterable[str], path: str, config: CorpusConfig, report: CorpusReport
) -> Iterator[tuple[str | None, str | None]]:
    """Iterates over `(document, None)` or `(document, why it is left out)`, from the column `config.text_field`.

    Args:
        lines: of a CSV or TSV file.
        path: the file's path, whose ending tells its format.
        config: the column, and whether rows with too few or too many cells are refused or skipped.
        report: counts those that are skipped.

    Raises:
        UserError: there is no such column, or a row is malformed.
    """
    ragged: list[int] | None = [] if config.broken_lines == SKIP else None
    try:
        for row in _rows(path, lines, [config.text_field], (), table_format(path), None, ragged):
            yield stripped_document(row.cells[0])
    except MissingColumn as error:
        raise _with_remedy(error) from None
    except RaggedRow as error:
        raise UserError(f"{error} Or give --broken-lines skip (data.broken_lines: skip) to count such rows.") from None
    finally:
        for line in ragged or ():
            report.add_broken_line("too few or too many cells", f"{path} line {line}")


def parquet_documents(path: str, config: CorpusConfig) -> Iterator[tuple[str | None, str | None]]:
    """As `table_documents`, from a Parquet file.

    Raises:
        Unreadable: the file is damaged.
        UserError: there is no such column, or it is not text; or pyarrow is not installed.
    """
    parquet, arrow = import_extra("pyarrow.parquet", "A Parquet file"), import_extra("pyarrow", "A Parquet file")
    name = config.text_field
    try:
        with open_file(path) as stream:
            file = parquet.ParquetFile(stream)
            schema = file.schema_arrow
            if name not in schema.names:
                raise _with_remedy(MissingColumn(_missing(path, schema.names, name)))
            kind = schema.field(name).type
            values = kind.value_type if arrow.types.is_dictionary(kind) else kind
            if str(values) not in ("string", "large_string", "string_view"):
                raise _with_remedy(UserError(f"{path}: needs text in the column {name!r}. Received: {kind}."))
            for batch in file.iter_batches(_ROWS_AT_ONCE, columns=[name]):
                # Not to strings, as Arrow does not check that they are UTF-8.
                for cell in batch.column(0).cast(arrow.large_string()).cast(arrow.large_binary()).to_pylist():
                    yield decoded_document(cell or b"")
    except (arrow.ArrowException, OSError) as error:
        raise Unreadable(f"damaged Parquet ({' '.join(str(error).split())[:100]})") from None


def _with_remedy(error: UserError) -> UserError:
    return UserError(f"{error} Give the column of the text: --text-field NAME (data.text_field).")


def _lines(path: str) -> Iterator[str]:
    try:
        yield from read_standard_input() if path == "-" else read_lines(path)
    except Unreadable as problem:
        where = f"{path} line {problem.line}" if problem.line else path
        raise UserError(f"{where}: needs a table in UTF-8 text. Received: {problem}.") from None


def _raw_rows(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    return ((number, line.split("\t")) for number, line in enumerate(lines, 1) if line)


def _quoted_rows(path: str, lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader((line + "\n" for line in lines), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1  # A quoted cell may span several lines; the row is identified by its first.
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            remedy = "Close every quote and double those inside a cell"
            remedy += ", or read it as raw_tsv, where quotes have no meaning." if delimiter == "\t" else "."
            raise UserError(f"{path} line {line}: needs cells quoted as in CSV. Received: {error}. {remedy}") from None
        if cells:
            yield line, cells


def _json_rows(path: str, lines: Iterable[str], wanted: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[Row]:
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
                raise MissingColumn(_missing(f"{path} line {number}", list(values), name))
        yield Row(number, tuple(values.get(name) for name in wanted + optional))
    if keys is None:
        raise UserError(f"{path}: needs one JSON object a line. Received: an empty file.")


def _place(where: str, columns: Sequence[str], name: str) -> int:
    if name not in columns:
        raise MissingColumn(_missing(where, columns, name))
    if columns.count(name) > 1:
        raise UserError(f"{where}: needs one column {name!r}. Received: {columns.count(name)} with that name.")
    return columns.index(name)


def _missing(where: str, columns: Sequence[str], name: str) -> str:
    lowered = {column.lower(): column for column in columns}
    nearest = difflib.get_close_matches(name.lower(), lowered, n=1)
    hint = f" The nearest is {lowered[nearest[0]][:_SHOWN_CHARACTERS]!r}." if nearest else ""
    return f"{where}: needs a column {name!r}. Received: the columns {_shown(columns)}.{hint}"


def _shown(columns: Sequence[str]) -> str:
    shown = ", ".join(repr(column[:_SHOWN_CHARACTERS]) for column in columns[:_SHOWN_COLUMNS])
    more = len(columns) - _SHOWN_COLUMNS
    return f"{shown} and {more} more" if more > 0 else shown


def _ragged(path: str, line: int, columns: Sequence[str], cells: list[str], format: str) -> str:
    hint = {
        "csv": "Quote cells that contain a comma.",
        "tsv": "Quote cells that contain a tab.",
        "raw_tsv": "A cell cannot contain tabs or line breaks; read a file with quoted cells as tsv.",
    }[format]
    return f"{path} line {line}: needs {len(columns)} cells ({_shown(columns)}). Received: {len(cells)}. {hint}"
