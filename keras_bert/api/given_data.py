"""Data given as Python objects: written to files in the run's folder, and read from there like any other data.

So a run from Python reads files like the command's, can resume, and can be repeated without the calling program.
"""

from __future__ import annotations

import collections
import datetime
import glob
import hashlib
import json
import logging
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, NamedTuple

from keras_bert.config.pretraining import require_files
from keras_bert.core import files, whole_files
from keras_bert.core.errors import UserError
from keras_bert.core.imports import import_extra
from keras_bert.core.patterns import matched
from keras_bert.data.tables.tables import TABLE_ENDINGS, is_data_set
from keras_bert.training.run_folder import GIVEN, RunFolder

_log = logging.getLogger(__name__)

TEXT = "text"  # The column name for texts given without one.
_ROWS_AT_ONCE = 1_000
_ENDLESS = -1  # tf.data.INFINITE_CARDINALITY.
_LIKE_A_PATH = re.compile(r"\S{1,200}")
_ENDINGS = (*TABLE_ENDINGS, ".txt", ".gz", ".bz2", ".xz", ".zst", ".conllu", ".xml")


class GivenCorpus(NamedTuple):
    """Attributes:
    paths: the files to read, globs or data sets by name; None for the recipe's own.
    text: the column of the texts; None for the default.
    """

    paths: list[str] | None
    text: str | None


class GivenData:
    """The data given to a run, kept in `given/` of its folder."""

    def __init__(self, folder: str):
        self._run = RunFolder(folder)
        self._folder = files.join(folder, GIVEN)
        self._unwritten: list[_Unwritten] = []

    def corpus(self, data: Any, text: str | None) -> GivenCorpus:
        """The text to pretrain on; see `keras_bert.pretrain`. Raises `UserError` for missing files."""
        if data is None:
            return GivenCorpus(None, text)
        if paths := paths_in(data):
            require_files(paths)
            return GivenCorpus(paths, text)
        return GivenCorpus([self._kept("text", data)], text or TEXT)

    def source(self, name: str, data: Any) -> str:
        """The path, glob or data set's name as given; for other data, the file that `write` will keep them in.

        Args:
            name: the role of the data, such as "train"; also the file's name.
            data: a path; texts; rows as dicts, or columns as a dict; a DataFrame, a `datasets.Dataset`, an Arrow table
                or a `tf.data.Dataset`.

        Raises:
            UserError: a list of several paths, or of strings that look like missing files; see `paths_in`.
        """
        paths = paths_in(data) or []
        if len(paths) > 1:
            raise UserError(
                f"{name}: needs a single path, which may be a glob of tables. Received: {len(paths)}, {paths[0]!r} "
                "first. Give one, or the rows of all."
            )
        return paths[0] if paths else self._kept(name, data)

    def _kept(self, name: str, data: Any) -> str:
        arrow = _arrow_batches(data)
        path = files.join(self._folder, f"{name}.{'arrow' if arrow else 'jsonl'}")
        self._unwritten.append(_Unwritten(name, data, arrow, path))
        return path

    def write(self) -> None:
        """Writes the files promised by `corpus` and `source`; call it once the settings are checked.

        Raises:
            UserError: data are empty or of an unknown kind; or the folder's run has begun, or is held by another
                process, with other data.
        """
        for name, data, arrow, path in self._unwritten:
            with whole_files.atomic_write(path, "wb", self._folder) as stream:  # Each worker of a run writes it.
                written = _Hashed(stream)
                count = _write_arrow(written, arrow) if arrow else _write_lines(written, _lines(name, data))
                if not count:
                    raise UserError(f"{name}: needs rows. Received: an empty {type(data).__name__}.")
                if files.exists(path) and files.sha256(path) != written.sha256():
                    if self._run.any_has_begun():
                        raise UserError(
                            f"{path}: holds the data that the run has begun with. Received: other data for {name}. "
                            "Give the same to resume it, fresh=True to start over in a new folder, or another output."
                        )
                    with self._run as run:  # A process that has yet to write a checkpoint needs them to resume.
                        run.hold()
            _log.info(f"{path} keeps the {count:,} rows of {name}.")
        self._unwritten.clear()


class _Unwritten(NamedTuple):
    name: str
    data: Any
    arrow: Iterator[Any] | None
    path: str


class _Hashed:
    """A stream that passes writes on to another and computes their SHA-256."""

    closed = False

    def __init__(self, stream: IO[bytes]):
        self._stream, self._hash = stream, hashlib.sha256()

    def write(self, data: Any) -> int:
        self._hash.update(data)
        return self._stream.write(data)

    def flush(self) -> None:
        self._stream.flush()

    def sha256(self) -> str:
        return self._hash.hexdigest()


def paths_in(data: Any) -> list[str] | None:
    """The data as a list of paths, globs and data sets' names; None if they are data themselves.

    A list of strings holds paths if any of them exists or names a data set, and texts otherwise.

    Raises:
        UserError: no path exists, but all look like paths, which would otherwise be trained on silently as texts.
    """
    if isinstance(data, (str, os.PathLike)):
        return [os.fspath(data)]
    if not isinstance(data, (list, tuple)) or not data:
        return None
    if all(isinstance(item, os.PathLike) for item in data):
        return [os.fspath(item) for item in data]
    if not all(isinstance(item, str) for item in data):
        return None
    if any(is_data_set(item) or _exists(item) for item in data):
        return list(data)
    if all(_LIKE_A_PATH.fullmatch(item) and ("/" in item or item.endswith(_ENDINGS)) for item in data):
        raise UserError(f"data: needs files that exist, or texts. Received: {data[0]!r}, which is no file.")
    return None


def _exists(path: str) -> bool:
    if not _LIKE_A_PATH.fullmatch(path):
        return len(path) <= 200 and "\n" not in path and os.path.exists(path)
    return files.exists(path) or (glob.has_magic(path) and bool(matched(path)))


def _arrow_batches(data: Any) -> Iterator[Any] | None:
    """The record batches of an Arrow table or of a `datasets.Dataset`, with its features; None for other data."""
    if hasattr(data, "to_batches"):
        return iter(data.to_batches())
    if hasattr(data, "with_format") and getattr(data, "features", None):  # An IterableDataset may not know its own.
        tables = data.with_format("arrow").iter(_ROWS_AT_ONCE)
        schema = data.features.arrow_schema
        return (batch for table in tables for batch in table.cast(schema).to_batches())
    return None


def _write_arrow(stream: _Hashed, batches: Iterable[Any]) -> int:
    """Writes record batches as an Arrow stream; returns the number of their rows."""
    ipc = import_extra("pyarrow.ipc", "An Arrow table")
    count, writer = 0, None
    for batch in batches:
        writer = writer or ipc.new_stream(stream, batch.schema)
        writer.write_batch(batch)
        count += batch.num_rows
    if writer:
        writer.close()
    return count


def _write_lines(stream: _Hashed, lines: Iterable[bytes]) -> int:
    """Writes lines; returns their number."""
    count = 0
    for line in lines:
        stream.write(line)
        count += 1
    return count


def _lines(name: str, data: Any) -> Iterator[bytes]:
    """Yields the rows of data of any kind as lines of JSON."""
    for number, item in enumerate(_items(name, data), 1):
        try:
            row = json.dumps(_row(item), ensure_ascii=False, allow_nan=False)
            yield f"{row}\n".encode()
        except UnicodeEncodeError as error:
            shown = error.object[max(error.start - 40, 0) : error.end]
            raise UserError(f"{name} row {number}: needs text. Received: half a surrogate pair in {shown!r}.") from None
        except (TypeError, ValueError) as error:
            raise UserError(f"{name} row {number}: {error}") from None


def _items(name: str, data: Any) -> Iterable[Any]:
    if hasattr(data, "iter_rows"):  # polars
        return data.iter_rows(named=True)
    if hasattr(data, "itertuples"):  # pandas
        columns = [str(column) for column in data.columns]
        if twice := [column for column, count in collections.Counter(columns).items() if count > 1]:
            raise UserError(
                f"{name}: needs columns of different names. Received: {', '.join(map(repr, twice))} more than once. "
                "Rename or drop the others."
            )
        return (dict(zip(columns, row)) for row in data.itertuples(index=False, name=None))
    if hasattr(data, "as_numpy_iterator"):  # tf.data
        if int(data.cardinality()) == _ENDLESS:
            raise UserError(f"{name}: needs data that end. Received: a data set without end. Leave out repeat().")
        return data.as_numpy_iterator()
    if isinstance(data, Mapping):
        return _rows_of_columns(name, data)
    if isinstance(data, Iterable) and not isinstance(data, bytes):
        return data
    raise UserError(
        f"{name}: needs a path, texts, rows as dicts, a DataFrame, a Dataset or an Arrow table. "
        f"Received: {type(data).__name__}."
    )


def _rows_of_columns(name: str, columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for column, cells in columns.items():
        has_no_order = isinstance(cells, str | bytes | Mapping | set | frozenset)
        if has_no_order or not hasattr(cells, "__len__") or getattr(cells, "shape", None) == ():
            raise UserError(f"{name}: needs a list for each column. Received: {cells!r:.80} for {column!r}.")
    lengths = {column: len(cells) for column, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        received = ", ".join(f"{column} {length}" for column, length in lengths.items())
        raise UserError(f"{name}: needs columns of one length. Received: {received}.")
    return (dict(zip(columns, cells)) for cells in zip(*columns.values()))


def _row(item: Any) -> dict[str, Any]:
    if isinstance(item, (str, bytes)):
        return {TEXT: _cell(item)}
    if isinstance(item, Mapping):
        row = {str(key): _cell_of(key, value) for key, value in item.items()}
        if len(row) < len(item):  # Such as 1 and "1", which are one name in JSON.
            raise ValueError(f"needs columns of different names. Received: {list(item)!r:.80}.")
        return row
    shown = " ".join(repr(item).split())  # A NumPy array takes several lines.
    raise TypeError(f"needs a text, or a dict of columns. Received: {shown[:80]}.")


def _cell_of(column: object, value: Any) -> Any:
    try:
        return _cell(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{column!r} {error}") from None


def _cell(value: Any) -> Any:
    """A cell in JSON types: text for bytes and dates, Python values for NumPy's, None for missing values."""
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"needs text in UTF-8. Received: {value[:40]!r}.") from None
    if isinstance(value, (list, tuple)):
        return [_cell(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _cell(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # NumPy, or an `array.array`, which has no dtype.
        if getattr(getattr(value, "dtype", None), "kind", "") in ("M", "m"):  # Nanoseconds would become whole numbers.
            value = value.astype(f"{value.dtype.kind}8[us]")
        return _cell(value.tolist())
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas.
        return None
    if isinstance(value, (datetime.date, datetime.time)):  # JSON has no type for them.
        return value.isoformat()
    if value is not None and not isinstance(value, (str, bool, int, float)):
        raise TypeError(f"needs text, numbers or lists. Received: {type(value).__name__}.")
    if isinstance(value, float) and math.isinf(value):
        raise ValueError(f"needs finite numbers. Received: {value}.")
    return None if isinstance(value, float) and value != value else value
