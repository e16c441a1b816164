"""Opens every table that the commands read: files of all formats, and data sets of the hub and of TFDS."""

from __future__ import annotations

import glob
import os
import reprlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from keras_bert.config.corpus import TABLE_FORMATS
from keras_bert.config.pretraining import DATA_SETS, HUB_PREFIX, TFDS_PREFIX
from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.core.patterns import expand
from keras_bert.core.yaml_and_json import read_json
from keras_bert.data.corpus.text_lines import (
    Unreadable,
    beginning,
    decoded_lines,
    plain_ending,
    read_chunks,
    read_lines,
    remedy_of,
    what_is_no_text,
)
from keras_bert.data.tables.arrow_rows import ARROW, FILE_MAGIC, PARQUET, PARQUET_MAGIC, STREAM_MAGIC, arrow_rows
from keras_bert.data.tables.delimited import (
    CSV,
    DELIMITED,
    RAW_TSV,
    SSV,
    TSV,
    delimited_format,
    delimited_rows,
    require_one_separator,
)
from keras_bert.data.tables.hub_data import DESCRIPTIONS, hub_files, local_file
from keras_bert.data.tables.json_rows import JSON, LINES, is_json, json_format, json_line_rows, json_rows
from keras_bert.data.tables.rows import Reading, Row

if TYPE_CHECKING:
    from keras_bert.data.pipeline.runners import Runner
    from keras_bert.data.tables.tfds import TfdsTable, TfdsText

# The formats that a file may have, by the ending of its name.
_OF_ENDING = {
    ".csv": (CSV, SSV, TSV),
    ".tsv": (RAW_TSV, TSV, CSV, SSV),
    ".jsonl": (LINES,),
    ".ndjson": (LINES,),
    ".json": (LINES, JSON),
    ".parquet": (PARQUET,),
    ".arrow": (ARROW,),
    ".feather": (ARROW,),
}
TABLE_ENDINGS = tuple(_OF_ENDING)
_MAGIC = {PARQUET_MAGIC: PARQUET, FILE_MAGIC: ARROW, STREAM_MAGIC: ARROW}
_STATE, _SPLITS = "state.json", "dataset_dict.json"  # In folders that `datasets` writes with `save_to_disk`.


def is_data_set(source: str) -> bool:
    """Whether a source names a data set of the hub or of TFDS, rather than files."""
    return source.startswith(DATA_SETS)


def table_format(path: str, start: bytes) -> str | None:
    """The format of a table, one of `TABLE_FORMATS`; None for a file that is no table by its name or content.

    Args:
        start: the file's first kilobytes, decompressed, without white space in front.
    """
    if found := next((format for magic, format in _MAGIC.items() if start.startswith(magic)), None):
        return found
    ending, text = plain_ending(path), start.decode("utf-8", "replace")
    known = _OF_ENDING.get(ending)
    if known is None:
        return json_format(text) if is_json(text) else None
    if known[0] in DELIMITED:
        return delimited_format(ending, text)
    return json_format(text) if JSON in known else known[0]


def known_format(path: str, format: str | None) -> str | None:
    """The `format` given for several files if this file's name allows it; None otherwise.

    Args:
        format: one of `TABLE_FORMATS`, or None to detect each file's own.
    """
    known = () if is_data_set(path) else _OF_ENDING.get(plain_ending(path), TABLE_FORMATS)
    return format if format in known else None


def table_files(source: str) -> tuple[str, list[str]]:
    """Return (a name for messages, with the commit of a data set of the hub; the files of a table).

    Args:
        source: a file; a folder or a glob of files, where the descriptions of a data set (`DESCRIPTIONS`) are ignored
            if all other files have the ending of a table; a folder that `datasets` wrote (`save_to_disk`), whose split
            `train` is read if it has several; or `hf:datasets/…`.

    Raises:
        UserError: there are no such files.
    """
    if source.startswith(HUB_PREFIX):
        return hub_files(source, (*TABLE_ENDINGS, ".txt"))
    return source, saved_files(source) or _without_descriptions(expand([source]))


def _without_descriptions(paths: list[str]) -> list[str]:
    """Drop `DESCRIPTIONS`, as in a clone of a hub repository, if all other files are tables by name."""
    others = [path for path in paths if os.path.basename(path) not in DESCRIPTIONS]
    return others if others and all(plain_ending(path) in _OF_ENDING for path in others) else paths


def named_files(source: str) -> list[str]:
    """The files of a folder or a glob, see `table_files`; else the source alone, which need not exist."""
    return table_files(source)[1] if files.is_folder(source) or glob.has_magic(source) else [source]


def source_files(source: str) -> list[str]:
    """The files of a source of `read_texts`; [] for stdin and data sets by name."""
    return [] if source == "-" or is_data_set(source) else table_files(source)[1]


def saved_files(folder: str) -> list[str] | None:
    """The files of a data set that `datasets` wrote into a folder; None for any other path."""
    if not files.is_folder(folder):
        return None
    if files.exists(files.join(folder, _SPLITS)):
        splits = _texts_in(files.join(folder, _SPLITS), "splits")
        if "train" not in splits:
            raise UserError(
                f"{folder}: needs a split 'train'. Received: {', '.join(splits) or 'none'}. Give the folder of one: "
                f"{files.join(folder, 'SPLIT')}."
            )
        folder = files.join(folder, "train")
    state = files.join(folder, _STATE)
    if not files.exists(state):
        return None
    return [files.join(folder, name) for name in _texts_in(state, "_data_files", "filename")]


def _texts_in(path: str, field: str, inner: str | None = None) -> list[str]:
    """The texts in the list `field` of a JSON file, or in the field `inner` of its items; [] if there is no list."""
    found = read_json(path).get(field) or []
    items = found if isinstance(found, list) else [None]
    texts: list[Any] = [item.get(inner) if isinstance(item, dict) else None for item in items] if inner else items
    if not all(isinstance(text, str) for text in texts):
        form = f"objects with a text {inner!r}" if inner else "texts"
        raise UserError(
            f"{path}: needs a list {field!r} of {form}. Received: {reprlib.repr(found)}. Save the data set again."
        )
    return texts


def read_table(source: str, wanted: Sequence[str], optional: Sequence[str] = (), **options: Any) -> Iterator[Row]:
    """Iterates over the rows of a table.

    Args:
        source: as for `table_files`; `tfds:NAME[/CONFIG][:SPLIT]`; or "-" for stdin.
        wanted, optional: the names of columns.
        options: more fields of `Reading`.

    Raises:
        UserError: a file is missing, damaged, empty or not UTF-8; a column is missing; a row is broken.
    """
    return open_table(source).rows(Reading(tuple(wanted), tuple(optional), **options))


def is_table(source: str, format: str | None = None, of_lists: bool = False) -> bool:
    """Whether texts are in a table; otherwise they are in plain text, one per line, like stdin and .txt.

    Args:
        source: as for `read_table`.
        format: one of `TABLE_FORMATS`, which makes it a table.
        of_lists: whether only tables whose cells may be lists count, and so neither CSV nor TSV.

    Raises:
        UserError: there are no such files in a folder or a glob, or only some of them are tables.
    """
    if is_data_set(source):
        return True
    paths = [source] if format else named_files(source)
    formats = [format] if format else files.map_paths(_format_of, paths)
    are_tables = [found is not None and not (of_lists and found in DELIMITED) for found in formats]
    if len(set(are_tables)) > 1:
        table, plain = paths[are_tables.index(True)], paths[are_tables.index(False)]
        raise UserError(
            f"{source}: needs tables or plain text, not both. Received: {table} and {plain}. Give a quoted glob of "
            "one kind."
        )
    return are_tables[0]


def _format_of(path: str) -> str | None:
    """The format of a table; None for plain text, stdin and unreadable files."""
    ending = plain_ending(path)
    if path == "-" or ending == ".txt":
        return None
    if ending in _OF_ENDING:
        return _OF_ENDING[ending][0]
    try:
        return table_format(path, beginning(read_chunks(path))[0])
    except Unreadable:  # Reading it will raise the error.
        return None


def read_texts(source: str, columns: Sequence[str], format: str | None = None, **options: Any) -> Iterator[Row]:
    """Iterates over texts in the columns of a table, or in the lines of plain text, where a tab separates a pair.

    Args:
        source: see `is_table`; may be a folder or a glob of plain files too.
        columns: the names of one or two columns.
        format, options: fields of `Reading`.

    Raises:
        UserError: as for `read_table`.
    """
    if is_table(source, format):
        yield from read_table(source, columns, format=format, **options)
        return
    for path in [source] if source == "-" else table_files(source)[1]:
        name, line = "stdin" if path == "-" else path, 0
        try:
            for line, text in enumerate(read_lines(path), 1):
                texts = (text,) if len(columns) == 1 else tuple(text.split("\t"))
                if len(texts) != len(columns):
                    raise UserError(f"{name} line {line}: needs two texts separated by a tab. Received: {len(texts)}.")
                yield Row(line, texts, f"{name} line")
        except Unreadable as problem:
            raise UserError(f"{name} line {problem.line or line + 1}: {problem}. Give UTF-8 text.") from None


class Table:
    """A table in files, which can be read several times."""

    def __init__(self, name: str, paths: Sequence[str]):
        self.name, self.paths = name, list(paths)

    def rows(self, reading: Reading) -> Iterator[Row]:
        """Iterates over the rows, without blank lines. Raises `UserError` like `read_table`."""
        for path in self.paths:
            try:
                yield from file_rows(path, read_chunks(local_file(path)), reading)
            except Unreadable as problem:
                where = f"{path} line {problem.line}" if problem.line else path
                raise UserError(
                    f"{where}: needs a whole table, text in UTF-8. Received: {problem}. Convert it to UTF-8, or write "
                    "it again."
                ) from None


def open_table(source: str) -> Table | TfdsTable:
    """The table of a source; see `read_table`."""
    if source.startswith(TFDS_PREFIX):
        from keras_bert.data.tables.tfds import open_tfds_table  # Imports TensorFlow.

        return open_tfds_table(source)
    return Table(source, [source]) if source == "-" else Table(*table_files(source))


def open_tfds_text(entry: str, runner: Runner | None = None, text: str = "text") -> TfdsText:
    """The texts of `tfds:NAME[/CONFIG][:SPLIT]`; see `TfdsText`."""
    from keras_bert.data.tables.tfds import TfdsText  # Imports TensorFlow.

    return TfdsText(entry, runner, text)


def file_rows(path: str, chunks: Iterator[bytes], reading: Reading) -> Iterator[Row]:
    """Iterates over the rows of one file.

    Args:
        chunks: its content, decompressed.

    Raises:
        Unreadable: the file is missing, damaged or not UTF-8; after the rows before the damage.
        UserError: the file is no table, a column is missing, or a row is broken.
    """
    start, chunks = beginning(chunks)
    if not start:
        raise UserError(f"{path}: needs a table. Received: an empty file.")
    ending = plain_ending(path)
    if found := what_is_no_text(ending, start):
        remedy = remedy_of(found, f"Save it as one of {', '.join(TABLE_ENDINGS)}, with its columns.")
        raise UserError(f"{path}: needs a table. Received: {found}. {remedy}")
    text = start.decode("utf-8", "replace")
    format = reading.format or table_format(path, start) or delimited_format(ending, text)
    if reading.by_number and not reading.format and format in (CSV, SSV):
        require_one_separator(path, text)
    if format in (PARQUET, ARROW):
        return arrow_rows(path, local_file(path), format, reading)
    if format in (LINES, JSON):
        return (json_rows if format == JSON else json_line_rows)(path, chunks, reading)
    return delimited_rows(path, decoded_lines(chunks), format, reading)
