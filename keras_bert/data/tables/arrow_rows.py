"""Rows in Arrow's formats: Parquet, IPC files, and IPC streams, which the library `datasets` writes."""

import contextlib
import json
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

from keras_bert.core.errors import UserError, reason
from keras_bert.core.files import open_file
from keras_bert.core.imports import import_extra
from keras_bert.data.corpus.text_lines import Unreadable, compression, read_chunks
from keras_bert.data.tables.rows import Reading, Row, picked

PARQUET, ARROW = "parquet", "arrow"
PARQUET_MAGIC, FILE_MAGIC, STREAM_MAGIC = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
_ROWS_AT_ONCE = 1024
# {type of texts: type of the same bytes}
_BINARY = {"string": "binary", "large_string": "large_binary", "string_view": "binary_view"}


def arrow_rows(path: str, local: str, format: str, reading: Reading) -> Iterator[Row]:
    """Iterates over the rows of a file.

    Cells are Python values; text that is not UTF-8 stays bytes. If the schema has the features that `datasets` stores,
    class labels become the names of the classes, and -1 becomes None.

    Args:
        path: the file's name, for messages.
        format: `PARQUET` or `ARROW`.

    Raises:
        Unreadable: the file is damaged.
        UserError: a column is missing, the schema's features have another form, or pyarrow is not installed.
    """
    needed_by = f"{path}, in a format of Arrow,"
    arrow = import_extra("pyarrow", needed_by)
    modules = [import_extra(f"pyarrow.{name}", needed_by) for name in ("parquet", "ipc")]
    number = 0
    try:
        with _seekable(local) as stream:
            schema, batches = _opened(stream, format, *modules)
            columns = picked(schema.names, reading.places(path, schema.names))
            names = [name for name in columns if name is not None]
            features = _features(path, schema, names)
            for batch in batches(names):
                values = {name: _values(arrow, batch.column(name), features.get(name)) for name in names}
                none = [None] * batch.num_rows
                for cells in zip(*(values.get(name, none) for name in columns)):
                    number += 1
                    yield Row(number, cells, f"{path} row")
    except (arrow.ArrowException, MemoryError, OSError, UnicodeDecodeError) as error:  # A length may be damaged too.
        raise Unreadable(f"damaged {format.title()} ({reason(error, 100)})") from None


@contextlib.contextmanager
def _seekable(path: str) -> Iterator[Any]:
    """Open the file or, if it is compressed, a decompressed temporary copy, because Parquet is read from its end."""
    if not compression(path):
        with open_file(path) as stream:
            yield stream
        return
    with tempfile.TemporaryFile() as copy:
        copy.writelines(read_chunks(path))
        copy.seek(0)
        yield copy


def _opened(stream: Any, format: str, parquet: Any, ipc: Any) -> tuple[Any, Any]:
    """Return (the schema, function (names of columns) -> the batches)."""
    if format == PARQUET:
        file = parquet.ParquetFile(stream)
        return file.schema_arrow, lambda names: file.iter_batches(_ROWS_AT_ONCE, columns=names)
    magic = stream.read(len(FILE_MAGIC))
    stream.seek(0)
    if magic != FILE_MAGIC:
        opened = ipc.open_stream(stream)
        return opened.schema, lambda names: opened
    opened = ipc.open_file(stream)
    return opened.schema, lambda names: map(opened.get_batch, range(opened.num_record_batches))


def _features(path: str, schema: Any, columns: Iterable[str]) -> dict[str, Any]:
    """`{column: feature}`, as `datasets` stores them with the schema; {} if it has none."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"] or {}
        if all(_is_feature(features.get(column)) for column in columns):
            return features
    except KeyError:
        return {}
    except (AttributeError, TypeError, ValueError, RecursionError):
        pass
    raise UserError(
        f"{path}: needs the features that `datasets` stores in the schema, an object per column. Received: another "
        "form. Save the data set again, or remove 'huggingface' from the schema's metadata."
    )


def _is_feature(value: Any) -> bool:
    """Whether a value has the form of a feature; None if a column has none."""
    if isinstance(value, list):
        return len(value) == 1 and _is_feature(value[0])
    if not isinstance(value, dict):
        return value is None
    names = value.get("names") if value.get("_type") == "ClassLabel" else None
    is_class = names is None or (isinstance(names, list) and all(isinstance(name, str) for name in names))
    return is_class and _is_feature(value.get("feature"))


def _values(arrow: Any, column: Any, feature: Any) -> list[Any]:
    """The values of a column. Raises `ArrowException` if it is damaged: reading by its offsets would crash Python."""
    if arrow.types.is_dictionary(column.type):
        arrow.DictionaryArray.from_arrays(column.indices, column.dictionary)  # Checks the indices.
        values = _values(arrow, column.dictionary, feature)
        return [None if index is None else values[index] for index in column.indices.to_pylist()]
    # As bytes, because Arrow does not check that strings are UTF-8.
    binary = _BINARY.get(str(column.type))
    column = column.view(binary) if binary else column
    column.validate(full=True)
    cells = column.to_pylist()
    if binary:
        return [None if cell is None else _decoded(cell) for cell in cells]
    return [_named(value, feature) for value in cells] if feature else cells


def _decoded(cell: bytes) -> str | bytes:
    try:
        return cell.decode("utf-8")
    except UnicodeDecodeError:
        return cell


def _named(value: Any, feature: Any) -> Any:
    """Replace the numbers of classes in a value by their names."""
    if isinstance(value, list):
        inner = feature[0] if isinstance(feature, list) else feature.get("feature")
        return [_named(item, inner) for item in value] if inner else value
    names = feature.get("names") if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" else None
    if not names or not isinstance(value, int):
        return value
    return names[value] if 0 <= value < len(names) else None
