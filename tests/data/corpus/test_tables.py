"""Tables as people write them, and broken ones, which are refused by file and line."""

import bz2
import gzip
import lzma

import pytest

from keras_bert.data.corpus.tables import read_table, table_format
from keras_bert.errors import UserError


def write(path, content):
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return str(path)


def rows(path, wanted=("text", "label"), **options):
    return [(row.line, *row.cells) for row in read_table(path, wanted, **options)]


def refusal(path, wanted=("text", "label"), **options):
    with pytest.raises(UserError) as error:
        rows(path, wanted, **options)
    message = str(error.value)
    assert message.startswith(str(path)) and "\n" not in message
    return message


def test_csv_cells_with_commas_quotes_and_line_breaks_know_their_first_line(tmp_path):
    path = write(tmp_path / "a.csv", 'label,text\r\n1,"a, ""b""\r\nc"\r\n\r\n0, d \r\n')
    assert rows(path) == [(2, 'a, "b"\nc', "1"), (5, " d ", "0")]


def test_the_two_kinds_of_tsv_differ_by_their_quotes(tmp_path):
    path = write(tmp_path / "a.tsv", 'text\tlabel\n"a"\t1\n" b\t0\n')
    assert rows(path) == [(2, '"a"', "1"), (3, '" b', "0")]
    assert rows(write(tmp_path / "b.tsv", 'text\tlabel\n"a\tb"\t1\n'), format="tsv") == [(2, "a\tb", "1")]
    assert "line 3" in refusal(path, format="tsv") and "raw_tsv" in refusal(path, format="tsv")


def test_json_lines_keep_their_types(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"text": "a\\nb", "label": ["x", "y"]}\n\n{"label": 1, "text": "c", "more": 0}')
    assert rows(path) == [(1, "a\nb", ["x", "y"]), (3, "c", 1)]


@pytest.mark.parametrize("ending, compress", [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)])
def test_compressed_and_with_a_byte_order_mark(tmp_path, ending, compress):
    path = write(tmp_path / f"a.csv.{ending}", compress("\ufefftext,label\né,1\n".encode()))
    assert rows(path) == [(2, "é", "1")]


def test_columns_by_name_without_a_header_and_optional_ones(tmp_path):
    path = write(tmp_path / "a.tsv", "1\ta\n0\tb")
    assert rows(path, columns=("label", "text")) == [(1, "a", "1"), (2, "b", "0")]
    assert rows(path, ["text"], optional=["label", "more"], columns=("label", "text"))[1] == (2, "b", "0", None)
    lines = write(tmp_path / "a.jsonl", '{"text": "a"}\n{"text": "b"}')
    assert rows(lines, ["text"], optional=["label"]) == [(1, "a", None), (2, "b", None)]


def test_a_missing_column_names_those_there_and_the_nearest(tmp_path):
    path = write(tmp_path / "a.csv", "Sentence,label\na,1\n")
    message = refusal(path, ["sentence"])
    assert "line 1: needs a column 'sentence'" in message and "'Sentence', 'label'" in message
    assert message.endswith("The nearest is 'Sentence'.")
    assert "nearest" not in refusal(path, ["xyz"])
    lines = write(tmp_path / "a.jsonl", '{"text": "a", "label": 1}\n{"txt": "a", "label": 1}\n')
    assert "line 2" in refusal(lines) and "'txt'" in refusal(lines)
    assert "2 with that name" in refusal(write(tmp_path / "b.csv", "text,label,text\na,1,b\n"))


def test_ragged_rows_are_refused_or_counted(tmp_path):
    path = write(tmp_path / "a.tsv", "text\tlabel\na\t1\nb\nc\t0\t9\nd\t0\n")
    assert "line 3: needs 2 cells ('text', 'label'). Received: 1" in refusal(path)
    ragged = []
    assert [row[0] for row in rows(path, ragged=ragged)] == [2, 5] and ragged == [3, 4]


def test_bad_bytes_are_named_by_line_even_far_into_the_file(tmp_path):
    lines = 100_000  # Over a block of the reader.
    good = b"text\tlabel\n" + b"a longer text\t1\n" * lines
    path = write(tmp_path / "a.tsv", good + "\xe9\xe8\t1\n".encode("latin-1"))
    assert f"line {lines + 2}:" in refusal(path) and "UTF-8" in refusal(path)


@pytest.mark.parametrize(
    "name, content, told",
    [
        ("a.csv", "", "empty file"),
        ("a.jsonl", "\n", "empty file"),
        ("a.tsv", b"text\0label", "binary"),
        ("a.csv.gz", gzip.compress(b"text,label\n" * 999, mtime=0)[:30], "cannot be read"),
        ("a.csv", 'text,label\na,1\n"b,1\nc,1\n', "line 3: needs cells quoted as in CSV"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"text"', "line 2: needs one JSON object a line"),
        ("a.json", "[1]", "line 1: needs one JSON object a line. Received: list"),
        ("a.xlsx", "x", "needs a name that ends in"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, name, content, told):
    assert told in refusal(write(tmp_path / name, content))


def test_a_missing_file_and_formats_by_name(tmp_path):
    assert "No such file" in refusal(str(tmp_path / "none.csv"))
    assert [table_format(name) for name in ("A.CSV", "a.tsv.gz", "a.ndjson.xz")] == ["csv", "raw_tsv", "jsonl"]


def test_a_cell_as_long_as_a_book(tmp_path):
    text = "word " * 40_000
    assert rows(write(tmp_path / "a.csv", f"text,label\n{text},1\n")) == [(2, text, "1")]
