"""The user's own file: one label, several labels or a number; the dev side is chosen by hash."""

import json

import numpy as np
import pytest
from own_tasks import text_task
from tfds_folder import prepare
from whole_splits import load_examples

from keras_bert.config.finetuning import TaskDataConfig
from keras_bert.core.errors import UserError
from keras_bert.tasks.labels import label_finder, sorted_labels


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return str(path)


def refusal(*arguments, then=None, **options):
    with pytest.raises(UserError) as error:
        task = text_task(*arguments, **options)
        load_examples(task, then)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture
def train(tmp_path):
    return write(tmp_path / "train.csv", "".join(["text,label\n", *(f"text {n},{n % 11}\n" for n in range(300))]))


def test_labels_are_found_and_sorted(train, tmp_path):
    task = text_task(["text"], "label", train=train)
    assert task.labels == tuple(map(str, range(11))) and len(task.labels) == 11
    words = write(tmp_path / "b.csv", "text,label\na,warm\nb,Hot\nc,cold\n")
    assert text_task(["text"], "label", train=words, dev=words).labels == ("Hot", "cold", "warm")


def test_chinese_and_pairs_and_a_test_file_without_labels(tmp_path):
    content = "label\ttext_a\ttext_b\n1\t房间很好\t服务\n0\t不好\t差\n"
    path = write(tmp_path / "a.tsv", content)
    test = write(tmp_path / "test.jsonl", json.dumps({"text_a": "好", "text_b": "吗"}) + "\n")
    task = text_task(["text_a", "text_b"], "label", train=path, dev=path, test=test)
    examples = load_examples(task, "train")
    assert examples.texts == [["房间很好", "不好"], ["服务", "差"]] and examples.labels.tolist() == [1, 0]
    assert load_examples(task, "test").labels is None
    labelled = text_task(["text_a", "text_b"], "label", train=path, dev=path, test=path)
    assert load_examples(labelled, "test").labels.tolist() == [1, 0]


def test_the_dev_side_is_the_same_whatever_the_order(train, tmp_path):
    lines = open(train).read().splitlines()
    turned = write(tmp_path / "turned.csv", "\n".join([lines[0], *lines[:0:-1]]))
    sides = []
    for path in (train, turned):
        task = text_task(["text"], "label", train=path)
        sides.append([set(load_examples(task, split).texts[0]) for split in ("train", "dev")])
    assert sides[0] == sides[1] and not sides[0][0] & sides[0][1]
    assert sum(map(len, sides[0])) == 300 and 12 < len(sides[0][1]) < 55


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_several_labels_by_a_separator_or_a_list(tmp_path, name):
    rows = [("a", ["x", "y"]), ("b", []), ("c", ["z"]), ("d", [])]
    if name == "a.csv":
        content = 'text,label\na,x; y\nb,\nc,"[""z""]"\nd,[]\n'
    else:
        content = "\n".join(json.dumps({"text": text, "label": labels}) for text, labels in rows)
    path = write(tmp_path / name, content)
    task = text_task(["text"], "label", train=path, dev=path, kind="multi_label_classification", separator=";")
    examples = load_examples(task, "dev")
    assert task.labels == ("x", "y", "z") and examples.labels.dtype == np.float32
    assert examples.labels.tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize("cell", ["['x', 'y']", "['x']", "{'x', 'y'}", "('x',)", "['x' 'y']"])
def test_labels_as_python_prints_them_are_refused(tmp_path, cell):
    """pandas writes a column of lists to CSV this way: `['x'` and `'y']` would be learned as labels."""
    path = write(tmp_path / "a.csv", f'text,label\na,z\nb,"{cell}"\n')
    told = refusal(["text"], "label", train=path, kind="multi_label_classification")
    assert f"a.csv line 3: needs labels separated by ',', or a list in JSON. Received: {cell!r}" in told


def test_a_number_for_each_label_is_refused(tmp_path):
    """scikit-learn's MultiLabelBinarizer gives such rows: "1" and "0" would be learned as labels of every text."""
    rows = [("a", [1, 0, 0]), ("b", [1, 1, 0])]
    path = write(tmp_path / "a.jsonl", "\n".join(json.dumps({"text": text, "label": labels}) for text, labels in rows))
    told = refusal(["text"], "label", train=path, kind="multi_label_classification")
    assert "a.jsonl line 1: needs the names of labels, each once. Received: [1, 0, 0]" in told


def test_scores_and_numbers_in_json(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"text": "a", "score": 1}\n{"text": "b", "score": "2.5"}\n')
    task = text_task(["text"], "score", train=path, dev=path, kind="regression")
    assert load_examples(task, "dev").labels.tolist() == [1.0, 2.5]
    single = text_task(["text"], "score", train=path, dev=path)
    assert single.labels == ("1", "2.5")


@pytest.mark.parametrize(
    "cells, labels",
    [
        (["1", "01", "1.0", "10", "2", "-1", "+2"], ("-1", "1", "2", "10")),
        (["01", "1e3", "02.0", "1000.0"], ("01", "02.0", "1e3")),
        # One label is not a number, so all are text.
        (["1", "01", "1.0", "b"], ("01", "1", "1.0", "b")),
        (["1", "nan"], ("1", "nan")),
        (["1_0", "10"], ("10", "1_0")),
        # These numbers are equal only in floating point.
        (["9007199254740993", "9007199254740992"], ("9007199254740992", "9007199254740993")),
    ],
)
def test_numbers_are_labels_by_their_value(tmp_path, cells, labels):
    """Equal numbers would be separate labels, in an order that changes with Python's hash seed."""
    content = "\n".join(["text,label", *(f"a,{cell}" for cell in cells)])
    path = write(tmp_path / "a.csv", content)
    task = text_task(["text"], "label", train=path, dev=path)
    assert task.labels == labels == sorted_labels(set(cells)) == sorted_labels(cells[::-1])
    for cell, id in zip(cells, load_examples(task, "train").labels.tolist(), strict=True):
        assert labels[id] == cell or cell not in labels and float(labels[id]) == float(cell)


def test_other_files_may_write_a_number_in_another_way(tmp_path):
    """A model trained on 1 would not know JSON's 1.0, nor the reverse."""
    train = write(tmp_path / "train.csv", "text,label\na,1\nb,2\n")
    dev = write(tmp_path / "dev.jsonl", '{"text": "a", "label": 2.0}\n{"text": "b", "label": "01"}\n')
    assert load_examples(text_task(["text"], "label", train=train, dev=dev), "dev").labels.tolist() == [1, 0]
    # A model trained when these were two labels still tells them apart, and knows no third.
    find = label_finder(("01", "1", "2"))
    assert [find(word) for word in ("1", "01", "1.0", "2.0")] == [1, 0, None, None]
    assert label_finder(("1", "x"))("1.0") is None and label_finder(("1.0", "2"))("1e99999999999999999999") is None
    one = write(tmp_path / "one.csv", "text,label\na,1\nb,1.0\n")
    assert "needs 2 labels or more in its column 'label'. Received: '1'" in refusal(["text"], "label", train=one)


@pytest.mark.parametrize(
    "cells, labels, ids",
    [
        (["True", "false", "true"], ("True", "false"), [0, 1, 0]),
        # One is neither true nor false, so all are text.
        (["True", "maybe", "true"], ("True", "maybe", "true"), [0, 1, 2]),
        (["cafe\u0301", "b", "caf\u00e9"], ("b", "caf\u00e9"), [1, 0, 1]),
    ],
)
def test_the_same_label_in_another_spelling(tmp_path, cells, labels, ids):
    """JSON's true and pandas' True would be two classes, and so would the two forms of an accent."""
    path = write(tmp_path / "a.csv", "\n".join(["text,label", *(f"a,{cell}" for cell in cells)]))
    task = text_task(["text"], "label", train=path, dev=path)
    assert task.labels == labels == sorted_labels(cells[::-1])
    assert load_examples(task, "dev").labels.tolist() == ids
    # A model trained when these were two labels still tells them apart.
    assert [label_finder(cells)(cell) for cell in cells] == [0, 1, 2]


@pytest.mark.parametrize("number", [1, "1", 0.5])
def test_nan_is_no_label(tmp_path, number):
    """`json.dumps` of pandas' rows writes NaN for a missing label, which would become a class of its own."""
    rows = [{"text": "a", "label": number}, {"text": "b", "label": float("nan")}, {"text": "c", "label": 2}]
    path = write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert f"{path} line 2: needs a label. Received: nan." == refusal(["text"], "label", train=path)
    train = write(tmp_path / "train.csv", "text,label\na,1\nb,2\n")
    unlabelled = write(tmp_path / "test.jsonl", json.dumps(rows[1]) + "\n")
    assert load_examples(text_task(["text"], "label", train=train, test=unlabelled), "test").labels is None
    assert text_task(["text"], "label", train=write(tmp_path / "b.csv", "text,label\na,nan\nb,2\n")).labels


@pytest.mark.parametrize("kind", ["single_label_classification", "multi_label_classification"])
def test_a_label_is_one_line(tmp_path, kind):
    """A line break would shift every later label in labels.txt."""
    label = json.dumps(["a\nb"] if "multi" in kind else "a\nb")
    path = write(tmp_path / "a.jsonl", f'{{"text": "x", "label": "c"}}\n{{"text": "y", "label": {label}}}\n')
    found = refusal(["text"], "label", train=path, kind=kind)
    assert "a.jsonl line 2: needs a label without line breaks. Received: 'a\\nb'" in found


def test_a_data_set_of_tfds_takes_the_place_of_a_file(tmp_path):
    """Users could not train on a TFDS data set that belongs to no benchmark."""
    path = prepare(tmp_path, "rte", {"train": [(("a", "b"), 1), (("c", "d"), 0)]}, labels=["no", "yes"])
    source = f"tfds:{path}:train"
    task = text_task(["sentence1", "sentence2"], "label", train=source, dev=source)
    examples = load_examples(task, "train")
    assert task.labels == ("no", "yes") and sorted(zip(*examples.texts, examples.labels.tolist())) == [
        ("a", "b", 1),
        ("c", "d", 0),
    ]
    assert examples.origin == "glue/rte/2.0.0:train"
    told = refusal(["text"], "label", train=source)
    assert "needs a column 'text'. Received: the columns '" in told and "--text and --label" in told
    assert "needs a split of train" in refusal(["text"], "label", train=f"tfds:{path}:dev")


def test_a_table_without_a_header(tmp_path):
    path = write(tmp_path / "a.csv", 'pos;"good, really"\nneg;bad\n')
    task = text_task(["1"], "0", train=path, dev=path)
    examples = load_examples(task, "dev")
    assert task.labels == ("neg", "pos") and examples.texts == [["good, really", "bad"]]
    assert examples.labels.tolist() == [1, 0]


def test_columns_given_and_labels_of_a_model(tmp_path):
    path = write(tmp_path / "a.csv", "good,pos\nbad,neg\n")
    task = text_task(["t"], "l", test=path, columns=["t", "l"], labels=("pos", "neg"))
    assert load_examples(task, "test").labels.tolist() == [0, 1]


def test_what_is_wrong_is_named(train, tmp_path):
    dev = write(tmp_path / "dev.csv", "text,label\na,1\nb,99\n")
    assert "dev.csv line 3: needs a known label" in refusal(["text"], "label", train=train, dev=dev, then="dev")
    assert "line 1: needs a column 'txt'" in refusal(["txt"], "label", train=train)
    assert "The nearest is 'label'" in refusal(["text"], "labels", train=train)
    assert "none.csv: needs to exist, for the split 'train'" in refusal(["text"], "label", train="none.csv")
    one = write(tmp_path / "one.csv", "text,label\na,1\nb,1\n")
    assert "needs 2 labels or more in its column 'label'. Received: '1'" in refusal(["text"], "label", train=one)
    few = write(tmp_path / "few.csv", "text,label\na,1\nb,0\n")
    assert "none for the dev part" in refusal(["text"], "label", train=few, dev_share=1e-6, then="dev")
    half = write(tmp_path / "half.jsonl", '{"text": "a", "label": 1}\n{"text": "\\ud800", "label": 2}\n')
    assert "line 2: needs text. Received: half a surrogate" in refusal(
        ["text"], "label", train=half, dev=half, then="dev"
    )
    mixed = write(tmp_path / "mixed.jsonl", '{"text": "a", "label": 1}\n{"text": "b", "label": null}\n')
    assert "line 2: needs a label, as other rows have" in refusal(
        ["text"], "label", train=train, test=mixed, then="test"
    )
    number = write(tmp_path / "n.jsonl", '{"text": 5, "label": 1}\n{"text": "b", "label": 2}\n')
    assert "line 1: needs text. Received: 5" in refusal(["text"], "label", train=number, dev=number, then="train")
    for options, told in (
        ({"kind": "ranking"}, "kind: needs one of"),
        ({"dev_share": 1.5}, "dev_share: needs a share"),
    ):
        with pytest.raises(ValueError, match=told):
            TaskDataConfig(train=train, **options)
    assert "train: needs a training file" in refusal(["text"], "label")
    assert "data.texts (--text): needs the names of one or two columns" in refusal(
        ["a", "b", "c"], "label", train=train
    )
    assert "data.label (--label): needs another column" in refusal(["text"], "text", train=train)
    other = write(tmp_path / "other.csv", "text,class\na,1\nb,2\n")
    assert "line 1: needs a column 'label'. Received: the columns 'text', 'class'" in refusal(["text"], train=other)
