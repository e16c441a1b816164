"""Tables as people write them, and broken ones, which are refused with file and line."""

import bz2
import gzip
import json
import lzma
import shutil
import struct

import pytest

from keras_bert.core.errors import UserError
from keras_bert.data.corpus.documents import Corpus
from keras_bert.data.tables.tables import is_table, known_format, read_table, read_texts


def write(path, content):
    path.parent.mkdir(exist_ok=True)
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
    assert "line 3" in refusal(path, format="tsv", options="--text") and "raw_tsv" in refusal(
        path, format="tsv", options="--text"
    )


def test_json_lines_keep_their_types(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"text": "a\\nb", "label": ["x", "y"]}\n\n{"label": 1, "text": "c", "more": 0}')
    assert rows(path) == [(1, "a\nb", ["x", "y"]), (3, "c", 1)]


@pytest.mark.parametrize("ending, compress", [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)])
def test_compressed_and_with_a_byte_order_mark(tmp_path, ending, compress):
    path = write(tmp_path / f"a.csv.{ending}", compress("\ufefftext,label\né,1\n".encode()))
    assert rows(path) == [(2, "é", "1")]


def test_columns_by_name_without_a_header_and_optional_ones(tmp_path):
    path = write(tmp_path / "a.tsv", "1\ta\n0\tb")
    assert rows(path, header=("label", "text")) == [(1, "a", "1"), (2, "b", "0")]
    assert rows(path, ["text"], optional=["label", "more"], header=("label", "text"))[1] == (2, "b", "0", None)
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


def test_the_header_of_an_appended_file_is_no_row(tmp_path):
    """After `cat a.csv b.csv`, a column's name would be a text, and a class."""
    path = write(tmp_path / "a.csv", "text,label\na,1\ntext,label\nb,0\n")
    assert f"{path} line 3: needs a row. Received: the header again." in refusal(path)
    skipped = []
    assert len(rows(path, skip=lambda *what: skipped.append(what))) == 2
    assert skipped == [("the header again", f"{path} line 3")]
    assert len(rows(write(tmp_path / "b.csv", "text\na\ntext\n"), ["text"])) == 2


def test_an_optional_column_that_is_there_twice_is_refused_too(tmp_path):
    """CSV would give the first, and Parquet a KeyError."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    names = ["text", "label", "label"]
    parquet.write_table(arrow.Table.from_arrays([["a"], [1], [2]], names), str(tmp_path / "a.parquet"))
    for path in (write(tmp_path / "a.csv", "text,label,label\na,1,2\n"), str(tmp_path / "a.parquet")):
        with pytest.raises(UserError, match="needs one column 'label'. Received: 2 with that name"):
            list(read_table(path, ["text"], ["label"]))


def test_ragged_rows_are_refused_or_counted(tmp_path):
    path = write(tmp_path / "a.tsv", "text\tlabel\na\t1\nb\nc\t0\t9\nd\t0\n")
    assert "line 3: needs 2 cells ('text', 'label'). Received: 1" in refusal(path)
    skipped = []
    found = rows(path, skip=lambda reason, place: skipped.append((reason, place)))
    assert [row[0] for row in found] == [2, 5]
    assert skipped == [("too few or too many cells", f"{path} line {line}") for line in (3, 4)]


def test_bad_bytes_are_named_by_line_even_far_into_the_file(tmp_path):
    lines = 100_000  # More than a block of the reader.
    good = b"text\tlabel\n" + b"a longer text\t1\n" * lines
    path = write(tmp_path / "a.tsv", good + "\xe9\xe8\t1\n".encode("latin-1"))
    assert f"line {lines + 2}:" in refusal(path) and "UTF-8" in refusal(path)


@pytest.mark.parametrize(
    "name, content, told",
    [
        ("a.csv", "", "empty file"),
        ("a.jsonl", "\n", "empty file"),
        ("a.tsv", b"text\0label", "binary"),
        (
            "a.csv",
            "text,label\n".encode("utf-16"),
            "Received: UTF-16, not UTF-8. Convert it to UTF-8, or write it again.",
        ),
        ("a.csv.gz", gzip.compress(b"text,label\n" * 999, mtime=0)[:30], "cannot be read"),
        ("a.csv", 'text,label\na,1\n"b,1\nc,1\n', "line 3: needs cells quoted as in CSV"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"text"', "line 2: needs a JSON object with 'text', 'label'."),
        ("a.json", "[1]", "line 1: needs a JSON object with 'text', 'label'. Received: not an object, '[1]'"),
        (
            "b.json",
            f'[{{"text": {"1" * 5000}, "label": 1}}]',
            "line 1: needs JSON. Received: Integer of too many digits",
        ),
        ("a.xlsx", "PK\3\4", "needs a table. Received: a zip archive or an Office document. Save it as one of .csv,"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, name, content, told):
    assert told in refusal(write(tmp_path / name, content))


@pytest.mark.parametrize("scalar", ["5", "null", '"text"'])
def test_a_json_file_of_one_scalar_is_refused(tmp_path, scalar):
    """It would end in a traceback."""
    assert f"as objects. Received: '{scalar}'." in refusal(write(tmp_path / "a.json", scalar), format="json")


def test_a_missing_file():
    with pytest.raises(UserError, match=r"No file matches 'none.csv'"):
        next(read_table("none.csv", ["text"]))


def test_a_cell_as_long_as_a_book(tmp_path):
    text = "word " * 40_000
    assert rows(write(tmp_path / "a.csv", f"text,label\n{text},1\n")) == [(2, text, "1")]


ROWS = [('Great, "really" good', "pos"), ("bad\nfilm", "neg"), ("semi; colon", "pos")]
CELLS = [("id", "text", "label"), *((str(n), *row) for n, row in enumerate(ROWS))]


def quoted(separator, every=False):
    """As pandas writes it, with quotes around cells that need them, or as R does, around every cell."""
    needs = [separator, '"', "\n"]
    return "".join(
        separator.join(
            '"' + cell.replace('"', '""') + '"' if every or any(mark in cell for mark in needs) else cell
            for cell in cells
        )
        + "\n"
        for cells in CELLS
    )


def records():
    return [dict(zip(CELLS[0], cells)) for cells in CELLS[1:]]


def columns():
    """pandas' default, with an index that has gaps."""
    by_name = zip(CELLS[0], zip(*CELLS[1:]))
    return {name: {str(7 * n): cell for n, cell in enumerate(cells)} for name, cells in by_name}


TEXTS = {
    "a.csv": quoted(","),
    "semicolons.csv": quoted(";"),
    "tabs.csv": quoted("\t"),
    "a.tsv": quoted("\t"),
    "all.tsv": quoted("\t", every=True),
    "commas.tsv": quoted(","),
    "no ending": quoted("\t"),
    "lines.json": "".join(json.dumps(row) + "\n" for row in records()),
    "list.json": json.dumps(records()),
    "list with indents.json": json.dumps(records(), indent=2),
    "a list": json.dumps(records()),
    "columns.json": json.dumps(columns()),
    "columns with indents.json": json.dumps(columns(), indent=2),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_rows_are_the_same_however_they_are_written(tmp_path, name):
    """Told by name or content: otherwise users lose their first hour to separators and quotes."""
    path = write(tmp_path / name, TEXTS[name])
    assert [row[1:] for row in rows(path)] == ROWS


def arrow_table():
    arrow = pytest.importorskip("pyarrow", reason="the extra datasets is not installed")
    texts, labels = zip(*ROWS)
    table = arrow.table({"text": texts, "label": [1, 0, 1], "tags": [[0, 1], [], [1]], "kind": labels})
    table = table.set_column(3, "kind", table["kind"].dictionary_encode())
    names = {"names": ["neg", "pos"], "_type": "ClassLabel"}
    features = {"label": names, "tags": {"feature": names, "_type": "List"}, "text": {"_type": "Value"}}
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


def write_arrow(path, table, opens):
    import pyarrow.ipc

    path.parent.mkdir(exist_ok=True, parents=True)
    with getattr(pyarrow.ipc, opens)(str(path), table.schema) as writer:
        writer.write_table(table, 2)
    return str(path)


def save_to_disk(folder, table):
    """What `datasets.Dataset.save_to_disk` leaves, with one of its cache files beside it."""
    for number, part in enumerate((table.slice(0, 2), table.slice(2))):
        write_arrow(folder / f"data-{number:05}-of-00002.arrow", part, "new_stream")
    write_arrow(folder / "cache-1234.arrow", table, "new_stream")
    names = [{"filename": f"data-{number:05}-of-00002.arrow"} for number in range(2)]
    write(folder / "state.json", json.dumps({"_data_files": names, "_split": None}))
    write(folder / "dataset_info.json", "{}")
    return str(folder)


def test_what_arrow_reads(tmp_path):
    """Class labels are names, so that a model's config.json has names and not 0 and 1."""
    table = arrow_table()
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    shutil.copy(tmp_path / "a.parquet", tmp_path / "no ending")
    saved = save_to_disk(tmp_path / "splits" / "train", table)
    sources = [
        *(str(tmp_path / name) for name in ("a.parquet", "no ending")),
        write_arrow(tmp_path / "a.feather", table, "new_file"),
        write_arrow(tmp_path / "stream.arrow", table, "new_stream"),
        saved,
    ]
    # Compressed like all files of some users, these would be refused as damaged.
    for name, ending, compress in (("a.parquet", "gz", gzip.compress), ("stream.arrow", "xz", lzma.compress)):
        sources.append(write(tmp_path / f"{name}.{ending}", compress((tmp_path / name).read_bytes())))
    for source in sources:
        assert [row[1:] for row in rows(source)] == ROWS, source
        assert rows(source, ["kind"])[1][1:] == ("neg",)
        assert [row[1] for row in rows(source, ["tags"])] == [["neg", "pos"], [], ["pos"]]
        assert "needs a column 'txt'" in str(pytest.raises(UserError, rows, source, ["txt"]).value)
    write(tmp_path / "splits" / "dataset_dict.json", '{"splits": ["train", "test"]}')
    assert len(rows(str(tmp_path / "splits"))) == 3
    write(tmp_path / "splits" / "dataset_dict.json", '{"splits": ["test"]}')
    assert "Received: test. Give the folder of one" in refusal(str(tmp_path / "splits"))
    cut = write(tmp_path / "b.parquet", (tmp_path / "a.parquet").read_bytes()[:-9])
    assert "b.parquet: needs a whole table, text in UTF-8. Received: damaged Parquet" in refusal(cut)
    cut = write(tmp_path / "b.parquet.gz", (tmp_path / "a.parquet.gz").read_bytes()[:-9])
    assert "b.parquet.gz: needs a whole table, text in UTF-8. Received: cannot be read (Compressed" in refusal(cut)
    assert "Received: LZ4-compressed data. " in refusal(write(tmp_path / "c.csv.lz4", b"\x04\x22\x4d\x18\x40\x40"))


@pytest.mark.parametrize(
    ("column", "features"),
    [
        ("label", [1]),
        ("label", "text"),
        ("label", {"label": "ClassLabel"}),
        ("label", {"label": {"_type": "ClassLabel", "names": "ab"}}),
        ("label", {"label": {"_type": "ClassLabel", "names": [1, 2]}}),
        ("tags", {"tags": [[]]}),
        ("tags", {"tags": {"feature": "ClassLabel"}}),
    ],
)
def test_features_of_another_form_are_refused(tmp_path, column, features):
    """It would be a traceback, or the letters of a text as the names of classes."""
    schema = {"huggingface": json.dumps({"info": {"features": features}})}
    path = write_arrow(tmp_path / "a.arrow", arrow_table().replace_schema_metadata(schema), "new_stream")
    assert "a.arrow: needs the features that `datasets` stores in the schema" in refusal(path, [column])


def test_features_may_be_null(tmp_path):
    schema = {"huggingface": json.dumps({"info": {"features": None}})}
    path = write_arrow(tmp_path / "a.arrow", arrow_table().replace_schema_metadata(schema), "new_stream")
    assert rows(path, ["label"])[0] == (1, 1)


def test_damage_inside_of_arrow_is_told_and_nothing_else_taken_for_it(tmp_path):
    """Arrow trusts a file: damaged offsets would silently end the process, and other bytes end in a traceback."""
    arrow = pytest.importorskip("pyarrow", reason="the extra datasets is not installed")
    sound, damaged = (struct.pack("<3i", 0, middle, 6) for middle in (3, 1 << 30))
    texts = arrow.array(["one", "two"])
    views = arrow.array(["one", "two"], arrow.string_view())  # Polars writes them.
    views = arrow.DictionaryArray.from_arrays([1, None], views)
    path = write_arrow(tmp_path / "a.arrow", arrow.table({"text": views}), "new_stream")
    assert rows(path, ["text"]) == [(1, "two"), (2, None)]
    for column in (texts, texts.dictionary_encode()):
        path = write_arrow(tmp_path / "a.arrow", arrow.table({"text": column}), "new_stream")
        assert len(rows(path, ["text"])) == 2
        write(tmp_path / "a.arrow", (tmp_path / "a.arrow").read_bytes().replace(sound, damaged))
        assert "Received: damaged Arrow" in refusal(path, ["text"])
    words = arrow.ListArray.from_arrays([0, 1], arrow.array([b"\xff"]).view("string"))
    path = write_arrow(tmp_path / "a.arrow", arrow.table({"words": words}), "new_stream")
    assert "Received: damaged Arrow" in refusal(path, ["words"])


def test_a_damaged_length_in_arrow_is_told(tmp_path):
    """A length of 2**62 bytes, for which there is no memory, would end in a traceback."""
    arrow = pytest.importorskip("pyarrow", reason="the extra datasets is not installed")
    ipc = pytest.importorskip("pyarrow.ipc", reason="the extra datasets is not installed")
    path = write_arrow(tmp_path / "a.arrow", arrow.table({"text": ["x" * 12_345]}), "new_stream")
    *_, batch = ipc.MessageReader.open_stream(path)
    content, length = (tmp_path / "a.arrow").read_bytes(), struct.pack("<q", batch.body.size)
    assert content.count(length) == 1
    write(tmp_path / "a.arrow", content.replace(length, struct.pack("<q", 1 << 62)))
    assert "Received: damaged Arrow (MemoryError)" in refusal(path, ["text"])


@pytest.mark.parametrize("splits", [[1, 2], 5, "train"])
def test_splits_of_another_form_are_refused(tmp_path, splits):
    """It would be a traceback, or the letters of a text as splits."""
    write(tmp_path / "dataset_dict.json", json.dumps({"splits": splits}))
    assert "dataset_dict.json: needs a list 'splits' of texts. Received: " in refusal(str(tmp_path))


@pytest.mark.parametrize("names", [["a.arrow"], [{}], [{"filename": 5}], 5])
def test_names_of_data_files_of_another_form_are_refused(tmp_path, names):
    write(tmp_path / "state.json", json.dumps({"_data_files": names}))
    assert "state.json: needs a list '_data_files' of objects with a text 'filename'. " in refusal(str(tmp_path))


def test_files_of_a_folder_or_a_glob_are_one_table(tmp_path):
    for number in range(3):
        write(tmp_path / "parts" / f"{number}.csv", f"text,label\n{number},x\n")
    for source in (tmp_path / "parts", tmp_path / "parts" / "*.csv"):
        assert [row[:2] for row in rows(str(source))] == [(2, "0"), (2, "1"), (2, "2")]


def test_texts_are_in_lines_or_in_a_table(tmp_path):
    """Lines of a CSV would be taken for texts, and a table without a known ending be refused."""
    lines = write(tmp_path / "texts" / "a.txt", "text,label\n{}\n")
    write(tmp_path / "texts" / "b", "c\n")
    table = write(tmp_path / "b.csv", "text,label\na,1\n")
    unknown = write(tmp_path / "c", '{"text": "a"}\n')
    for source, options, found in (
        (lines, {}, ["text,label", "{}"]),
        (str(tmp_path / "texts"), {}, ["text,label", "{}", "c"]),
        (str(tmp_path / "texts" / "*"), {}, ["text,label", "{}", "c"]),
        (lines, {"format": "csv", "skip": lambda *_: None}, []),
        (table, {}, ["a"]),
        (unknown, {}, ["a"]),
    ):
        assert [row.cells[0] for row in read_texts(source, ["text"], **options)] == found
    with pytest.raises(UserError, match="a.txt line 1: needs two texts separated by a tab. Received: 1"):
        next(read_texts(lines, ["a", "b"]))


def test_a_glob_is_judged_by_its_files(tmp_path):
    """It would be taken for a file's name, and rows of JSON or CSV for texts."""
    write(tmp_path / "b.csv", "text,label\nb,1\n")
    write(tmp_path / "c", '{"text": "c"}\n')
    for pattern, found in (("*", ["b", "c"]), ("[ab].*", ["b"]), ("[c]", ["c"]), ("", ["b", "c"])):
        assert [row.cells[0] for row in read_texts(str(tmp_path / pattern), ["text"])] == found
    assert not is_table(str(tmp_path / "[b].*"), of_lists=True)
    write(tmp_path / "a.txt", "plain\n")
    for source in (tmp_path, tmp_path / "*"):
        with pytest.raises(UserError, match=f"needs tables or plain text, not both. .*{tmp_path}/b.csv and .*a.txt. "):
            next(read_texts(str(source), ["text"]))
    with pytest.raises(UserError, match="No file matches"):
        is_table(str(tmp_path / "*.json"))


def test_what_describes_tables_is_none_of_their_rows(tmp_path):
    """A cloned hub repository would be read as plain text, because its first file is README.md."""
    readme = write(tmp_path / "README.md", "# Reviews\n")
    write(tmp_path / "dataset_infos.json", "{}")
    write(tmp_path / "reviews.jsonl", '{"text": "a", "label": 1}\n')
    for source in (str(tmp_path), str(tmp_path / "*")):
        assert [row[1] for row in rows(source)] == [row.cells[0] for row in read_texts(source, ["text"])] == ["a"]
        assert list(Corpus([source]).documents()) == ["a"]
    assert [row.cells[0] for row in read_texts(readme, ["text"])] == ["# Reviews"]
    write(tmp_path / "more.txt", "Text.\n")
    assert "# Reviews" in list(Corpus([str(tmp_path / "*.[mt]*")]).documents())


def test_the_format_of_the_training_file_is_that_of_others_like_it():
    """A model trained on a quoted TSV would read a data set of the hub, or JSON, as a quoted TSV."""
    kept = {"a.tsv": "tsv", "a.txt.gz": "tsv", "a": "tsv", "a.json": None, "a.parquet": None, "hf:datasets/a/b": None}
    assert {path: known_format(path, "tsv") for path in kept} == kept


def test_columns_by_number_have_no_header_above_them(tmp_path):
    path = write(tmp_path / "a.csv", '"Good, he said";1\nBad;0\n')
    assert rows(path, ["0", "1"]) == [(1, "Good, he said", "1"), (2, "Bad", "0")]
    assert rows(path, ["0"], optional=["1", "2", "label"])[1] == (2, "Bad", "0", None, None)
    told = refusal(path, ["1", "2"], options="--text and --label")
    assert "line 1: needs a column 2, counted from 0. Received: 2 columns, 'Good, he said', '1'." in told
    assert "with --text and --label" in told


def test_a_wrong_guess_names_the_options(tmp_path):
    """The message would name an undocumented setting, and propose to rename a Parquet file."""
    options = {"options": "--text and --label"}
    semicolons = write(tmp_path / "a.csv", "Good, he said;1\nBad, she said;0\n")
    told = refusal(semicolons, **options)
    assert "by its number from 0 if this line is no header" in told and "give --format csv, ssv, tsv or raw_tsv" in told
    told = refusal(semicolons, ["0", "1"], **options)  # No name shows that a text would be cut at its comma.
    assert "Received: commas (1) and semicolons (1). Give --format csv, ssv, tsv or raw_tsv" in told
    assert rows(semicolons, ["0", "1"], format="ssv")[0] == (1, "Good, he said", "1")
    minimal = write(tmp_path / "a.tsv", 'text\tlabel\n"a\tb"\t1\n')  # Nothing shows that this is quoted.
    assert "line 2: needs 2 cells" in refusal(minimal, **options) and "--format csv" in refusal(minimal, **options)
    for fixed in (semicolons, minimal):
        assert "--" not in refusal(fixed)  # Users do not choose a benchmark's columns.


def test_quotes_of_glue_are_characters(tmp_path):
    """Texts would lose their quotes, and scores change."""
    content = 'text\tlabel\n"Titanic"\t1\n"a ""b"" c"\t0\n"he" said\t1\n'
    assert rows(write(tmp_path / "a.tsv", content))[0] == (2, '"Titanic"', "1")
    assert rows(write(tmp_path / "b.tsv", content.replace('"a ""b"" c"', '"')))[1] == (3, '"', "0")
    certain = 'text\tlabel\n"Titanic"\t1\n"a ""b"" c"\t0\n'
    assert rows(write(tmp_path / "c.tsv", certain), format="raw_tsv")[1] == (3, '"a ""b"" c"', "0")
