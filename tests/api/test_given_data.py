"""Data given as Python objects are kept as files that the readers read; what is ambiguous or broken is refused."""

import array
import datetime
import json

import numpy as np
import pandas
import pyarrow
import pytest
import tensorflow as tf

from keras_bert.api.given_data import GivenData, paths_in
from keras_bert.core.errors import UserError
from keras_bert.data.tables.tables import read_table
from keras_bert.training.run_folder import RunFolder

ROWS = [{"text": "Good.", "stars": 5}, {"text": "„Bad“\n–", "stars": 1}]


class Polars:
    """The part of a polars DataFrame that is used."""

    def iter_rows(self, named):
        assert named
        return iter(ROWS)


class Streamed:
    """The part of a `datasets.IterableDataset` of CSV or JSON that is used: its columns have no known types."""

    features = None

    def with_format(self, name):
        raise NotImplementedError

    def __iter__(self):
        return iter(ROWS)


def keep(tmp_path, data, name="train"):
    given = GivenData(str(tmp_path))
    path = given.source(name, data)
    given.write()
    return path


def read(tmp_path, data, columns=("text", "stars")):
    path = keep(tmp_path, data)
    return [row.cells for row in read_table(path, columns)]


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        (row for row in ROWS),
        {"text": [row["text"] for row in ROWS], "stars": np.array([5, 1])},
        pandas.DataFrame(ROWS),
        Polars(),
        Streamed(),
        pyarrow.Table.from_pylist(ROWS),
        tf.data.Dataset.from_tensor_slices({"text": [row["text"] for row in ROWS], "stars": [5, 1]}),
    ],
    ids=["list", "generator", "columns", "pandas", "polars", "streamed", "arrow", "tf.data"],
)
def test_rows_of_every_kind_are_read_again_as_they_were(tmp_path, data):
    assert read(tmp_path, data) == [("Good.", 5), ("„Bad“\n–", 1)]


def test_workers_of_a_run_may_write_their_data_at_the_same_time(tmp_path):
    """With a shared temporary file, the first worker would rename it while the other writes."""

    def while_another_writes():
        yield ROWS[0]
        keep(tmp_path, ROWS)
        yield ROWS[1]

    assert read(tmp_path, while_another_writes()) == [("Good.", 5), ("„Bad“\n–", 1)]


def test_texts_and_cells_of_other_types(tmp_path):
    texts = tf.data.Dataset.from_tensor_slices(["Good.", "„Bad“"])
    assert read(tmp_path, texts, ["text"]) == [("Good.",), ("„Bad“",)]
    frame = pandas.DataFrame({"text": ["a", None], "at": [datetime.date(2026, 1, 2)] * 2, "tags": [["x"], ["y", "z"]]})
    path = keep(tmp_path, frame, "dev")
    with open(path, encoding="utf-8") as stream:
        assert [json.loads(line)["tags"] for line in stream] == [["x"], ["y", "z"]]
    at = np.array(["2026-01-02T03:04", "NaT"], "datetime64[ns]")  # A column as pandas' `to_numpy` gives it.
    with open(keep(tmp_path, {"at": at}, "dates"), encoding="utf-8") as stream:
        assert [json.loads(line)["at"] for line in stream] == ["2026-01-02T03:04:00", None]
    with open(keep(tmp_path, [{"tags": array.array("i", [1, 2])}], "arrays"), encoding="utf-8") as stream:
        assert json.load(stream)["tags"] == [1, 2]
    assert keep(tmp_path, tmp_path / "own.csv", "dev") == str(tmp_path / "own.csv")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "train: needs rows. Received: an empty list."),
        (5, "train: needs a path, texts, rows .* Received: int."),
        (["a", 5], "train row 2: needs a text, or a dict of columns. Received: 5."),
        ([b"\xff"], r"train row 1: needs text in UTF-8. Received: b'\\xff'."),
        (["a", "b\ud83d"], r"train row 2: needs text. Received: half a surrogate pair in '.*b\\ud83d'."),
        (np.array([["a", 5]], object), r"train row 1: needs a text, or a dict .* Received: array\(\['a', 5\], dty"),
        ([{"text": "a", "x": object()}], "train row 1: 'x' needs text, numbers or lists. Received: object."),
        ([{"text": "a", "x": [float("inf")]}], "train row 1: 'x' needs finite numbers. Received: inf."),
        ({"text": "A film.", "stars": 1}, "train: needs a list for each column. Received: 'A film.' for 'text'."),
        ({"text": ["a"], "stars": 1}, "train: needs a list for each column. Received: 1 for 'stars'."),
        ({"text": np.array("a")}, "train: needs a list for each column. Received: array.* for 'text'."),
        ({"text": {"a", "b"}, "stars": [1, 2]}, r"train: needs a list for each column. Received: \{.* for 'text'."),
        ([{"text": np.timedelta64(5, "ns")}], "train row 1: 'text' needs text, numbers or lists. Received: timedelta."),
        ({"text": ["a", "b"], "stars": [1]}, "train: needs columns of one length. Received: text 2, stars 1."),
        (
            pandas.DataFrame([["a", 1, 2, 3, 4]], columns=["text", 1, "1", "stars", "stars"]),
            "train: needs columns of different names. Received: '1', 'stars' more than once.",
        ),
        (tf.data.Dataset.from_tensors("a").repeat(), "train: needs data that end. Received: a data set without end."),
        ([{1: "a", "1": "b"}], r"train row 1: needs columns of different names. Received: \[1, '1'\]."),
    ],
)
def test_what_is_no_data_is_named(tmp_path, data, message):
    with pytest.raises(UserError, match=message):
        keep(tmp_path, data)
    assert not list(tmp_path.glob("given/train*"))


@pytest.mark.parametrize("begun", [".", "seed-2"])
def test_a_run_that_has_begun_keeps_its_data(begun, tmp_path):
    """Otherwise resuming with other rows would replace what the run has learned from before it is refused."""
    path = keep(tmp_path, ROWS)
    (tmp_path / begun).mkdir(exist_ok=True)
    (tmp_path / begun / "results.json").write_text("{}")
    assert keep(tmp_path, iter(ROWS)) == path
    with pytest.raises(UserError, match="train.jsonl: holds the data that the run has begun with. Received: other"):
        keep(tmp_path, ROWS[:1])
    assert len(list(read_table(path, ["text"]))) == 2


def test_the_data_of_another_process_are_kept(tmp_path):
    """If they were replaced before that process had a checkpoint, nothing could resume it once it is stopped."""
    path = keep(tmp_path, ROWS)
    with RunFolder(str(tmp_path)) as other:
        other.hold()
        assert keep(tmp_path, ROWS) == path
        with pytest.raises(UserError, match="in use by process"):
            keep(tmp_path, ROWS[:1])
        assert len(list(read_table(path, ["text"]))) == 2
    keep(tmp_path, ROWS[:1])
    assert len(list(read_table(path, ["text"]))) == 1


def test_a_list_of_strings_is_of_paths_if_one_exists_and_of_texts_otherwise(tmp_path):
    (tmp_path / "a.txt").write_text("A text.")
    assert paths_in("wiki/*") == ["wiki/*"]
    assert paths_in([str(tmp_path / "*.txt"), "missing.txt"]) == [str(tmp_path / "*.txt"), "missing.txt"]
    assert paths_in(["tfds:wikipedia"]) == ["tfds:wikipedia"]
    assert paths_in(["A text.", "Another/one."]) is None and paths_in(["词语", "句子"]) is None
    assert paths_in(["你好吗?", "[MASK]"]) is None  # A pattern that no file matches.
    with pytest.raises(UserError, match="data: needs files that exist, or texts. Received: 'wiki/a.txt'"):
        paths_in(["wiki/a.txt", "wiki/b.txt"])


def test_examples_are_of_a_single_path(tmp_path):
    """Otherwise the names of several files would be trained on as texts."""
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("text\nA text.\n")
    paths = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    assert keep(tmp_path, paths[:1]) == paths[0]
    assert keep(tmp_path, ["A text.", "Another."]) == str(tmp_path / "given" / "train.jsonl")
    with pytest.raises(UserError, match="train: needs a single path, which may be a glob .* Received: 2, .*a.csv' f"):
        keep(tmp_path, paths)
    with pytest.raises(UserError, match="data: needs files that exist, or texts. Received: 'c.csv'"):
        keep(tmp_path, ["c.csv", "d.csv"])
