"""GLUE's own folders: every task is read with its oddities, and what is wrong is refused."""

import gzip
import shutil

import numpy as np
import pytest
from glue_folder import write_glue, write_tsv
from tiny import VOCABULARY
from whole_splits import load_examples

from keras_bert.config.finetuning import REGRESSION, FinetuneConfig, TaskDataConfig
from keras_bert.core.errors import UserError
from keras_bert.tasks.classification.answers import TextWindow, plain_answers, submission_lines
from keras_bert.tasks.classification.benchmarks import GLUE
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.problem import SequenceProblem
from keras_bert.tasks.labels import BadCell, _number
from keras_bert.tasks.problem import open_problem
from keras_bert.tasks.sources import _index
from keras_bert.text.wordpiece import WordPieceTokenizer


@pytest.fixture(scope="module")
def glue(tmp_path_factory):
    return write_glue(tmp_path_factory.mktemp("glue"))


def names(examples):
    return [examples.label_names[label] for label in examples.labels]


def problem_of(task, folder):
    config = FinetuneConfig(task.name, data=TaskDataConfig(str(folder)))
    return open_problem(config, WordPieceTokenizer(VOCABULARY))


def refusal(*arguments):
    with pytest.raises(UserError) as error:
        load_examples(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    "task, split, first, labels",
    [
        ("cola", "train", ["A good one ."], ["acceptable", "unacceptable", "acceptable"]),
        ("cola", "dev", ["A good one ."], ["acceptable", "unacceptable"]),
        ("sst2", "train", ["a charming journey "], ["positive", "negative", "negative"]),
        ("mrpc", "dev", ['" We agree , he said', "We agree ."], ["equivalent", "not_equivalent"]),
        ("qqp", "train", ['What is "it"?', "What is it?"], ["duplicate", "not_duplicate"]),
        ("mnli", "train", ["He left .", "He went ."], ["entailment", "neutral", "contradiction"]),
        ("mnli", "dev_matched", ["He left .", "He went ."], ["entailment", "neutral", "contradiction"]),
        ("mnli", "dev_mismatched", ["He left .", "He stayed ."], ["contradiction", "neutral", "entailment"]),
        ("qnli", "dev", ["Is it so ?", "It is ."], ["not_entailment", "entailment", "not_entailment"]),
        ("rte", "train", ["Is it so ?", "It is ."], ["not_entailment", "entailment", "not_entailment"]),
        ("wnli", "train", ["Is it so ?", "It is ."], ["not_entailment", "entailment", "not_entailment"]),
    ],
)
def test_labelled_splits(glue, task, split, first, labels):
    examples = load_examples(GLUE[task], split, str(glue))
    assert [column[0] for column in examples.texts] == first
    assert names(examples) == labels and examples.labels.dtype == np.int32
    assert len(examples) == len(labels) and examples.indices.tolist() == list(range(len(labels)))


def test_every_test_split_is_read_without_labels_and_refused_for_evaluation(glue):
    for task in GLUE.values():
        dev_splits = [name for name in task.splits if name.startswith("dev")]
        for split in (name for name in task.splits if name.startswith("test")):
            examples = load_examples(task, split, str(glue))
            assert examples.labels is None and len(examples) == len(examples.indices) > 0
            with pytest.raises(UserError, match="needs labels to evaluate on. Received: none. ") as error:
                problem_of(task, glue).require_labels(split)
            assert task.name == "ax" or f"Evaluate on {dev_splits[0]}" in str(error.value)


def test_scores_are_numbers(glue):
    examples = load_examples(GLUE["stsb"], "train", str(glue))
    assert examples.labels.dtype == np.float32 and examples.labels.tolist() == [5.0, np.float32(3.8)]
    assert examples.label_names is None and GLUE["stsb"].kind == REGRESSION


def test_the_label_ids_are_the_places_in_tfds(glue):
    """RTE's entailment is 0 and WNLI's is 1, whatever the files say."""
    assert load_examples(GLUE["rte"], "dev", str(glue)).labels.tolist() == [1, 0, 1]
    assert load_examples(GLUE["wnli"], "dev", str(glue)).labels.tolist() == [0, 1, 0]
    assert GLUE["ax"].labels == GLUE["mnli"].labels and GLUE["ax"].trained_by == "mnli"


def test_labels_have_the_names_and_the_order_of_tfds_own_code():
    configs = pytest.importorskip("tensorflow_datasets.text.glue").Glue.builder_configs
    for task in GLUE.values():
        config = configs[task.name]
        assert task.labels == (tuple(config.label_classes) if config.label_classes else None), task.name
        assert set(task.tfds.texts or task.texts) == set(config.text_features), task.name


def test_rows_that_line_breaks_tore_are_left_out_and_told(glue):
    examples = load_examples(GLUE["qqp"], "train", str(glue))
    (told,) = examples.warnings
    assert "2 (the first: " in told and "line 3)" in told


def test_the_folder_itself_and_compressed_files(glue, tmp_path):
    task = GLUE["sst2"]
    inside = load_examples(task, "dev", str(glue / "SST-2"))
    assert inside.texts == load_examples(task, "dev", str(glue)).texts
    (tmp_path / "dev.tsv.gz").write_bytes(gzip.compress((glue / "SST-2/dev.tsv").read_bytes()))
    assert load_examples(task, "dev", str(tmp_path)).texts == inside.texts


def test_the_numbers_of_a_submission_come_from_the_file(tmp_path):
    write_tsv(tmp_path / "test.tsv", [["id", "question1", "question2"], [7, "a", "b"], [3, "c", "d"]])
    assert load_examples(GLUE["qqp"], "test", str(tmp_path)).indices.tolist() == [7, 3]
    write_tsv(tmp_path / "test.tsv", [["id", "question1", "question2"], ["x", "a", "b"]])
    assert "line 2: needs a whole number in the column 'id'" in refusal(GLUE["qqp"], "test", str(tmp_path))


@pytest.mark.parametrize("cell", [float("inf"), 1.7])
def test_an_index_that_is_no_whole_number_is_refused(cell):
    """Infinity would end in a traceback, and 1.7 would count as example 1."""
    with pytest.raises(BadCell, match="needs a whole number in the column 'idx'"):
        _index("idx", cell)


def test_a_number_beyond_floats_is_no_label():
    """The user would get an OverflowError."""
    with pytest.raises(BadCell, match="needs a number as its label. Received: 1000"):
        _number(10**400, None)


@pytest.mark.parametrize("cell", [1e39, "-3.5e38", 10**39])
def test_a_number_beyond_float32_is_no_label(cell):
    """The model would be trained on infinity."""
    with pytest.raises(BadCell, match=r"needs a label from -3.40282e\+38 to 3.40282e\+38. Received: "):
        _number(cell, None)
    assert np.isfinite(np.float32(_number(3.4e38, None)))


@pytest.mark.parametrize(
    "task, rows, told",
    [
        ("sst2", [["text", "label"], ["a", 1]], "line 1: needs a column 'sentence'. Received: the columns 'text'"),
        (
            "sst2",
            [["sentence", "label"], ["a", 1], ["b", 2]],
            "line 3: needs a known label, one of 0, 1. Received: '2'",
        ),
        ("sst2", [["sentence", "label"], ["a", ""]], "line 2: needs a label"),
        ("sst2", [["sentence", "label"]], "needs at least one example"),
        ("sst2", [["sentence", "label"], ["a"]], "line 2: needs 2 cells"),
        ("stsb", [["sentence1", "sentence2", "score"], ["a", "b", "high"]], "line 2: needs a number"),
        ("stsb", [["sentence1", "sentence2", "score"], ["a", "b", "nan"]], "line 2: needs a number"),
        ("rte", [["sentence1", "sentence2", "label"], ["a", "b", "neutral"]], "one of entailment, not_entailment"),
        ("cola", [["sentence", "label"], ["a", 1]], "line 1: needs 4 cells ('source', 'label', 'marks', 'sentence')"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, task, rows, told):
    path = write_tsv(tmp_path / "dev.tsv", rows)
    message = refusal(GLUE[task], "dev", str(tmp_path))
    assert message.startswith(str(path)) and told in message


def test_a_missing_file_says_which_are_there(glue, tmp_path):
    shutil.copytree(glue / "QNLI", tmp_path / "QNLI")
    (tmp_path / "QNLI/train.tsv").unlink()
    message = refusal(GLUE["qnli"], "train", str(tmp_path))
    assert "needs QNLI/train.tsv or train.tsv" in message and "a folder with QNLI/dev.tsv, QNLI/test.tsv." in message
    assert "no such folder" in refusal(GLUE["qnli"], "train", str(tmp_path / "none"))
    assert "dev_matched, dev_mismatched" in refusal(GLUE["mnli"], "dev", str(tmp_path))


def test_an_empty_text_is_kept_and_told(tmp_path):
    write_tsv(tmp_path / "dev.tsv", [["sentence", "label"], ["a", 1], [" ", 0]])
    examples = load_examples(GLUE["sst2"], "dev", str(tmp_path))
    assert len(examples) == 2 and "empty texts: 1 (the first: " in examples.warnings[0]


def test_submissions_are_as_the_server_wants_them(glue, tmp_path):
    files = [split.submission for task in GLUE.values() for split in task.splits.values() if split.submission]
    wanted = "CoLA SST-2 MRPC STS-B QQP MNLI-m MNLI-mm QNLI RTE WNLI AX".split()
    assert files == [f"{name}.tsv" for name in wanted]

    def written(task, indices, predictions):
        return "".join(submission_lines(GLUE[task], indices, predictions))

    problem = SequenceProblem(GLUE["sst2"], str(glue), WordPieceTokenizer(VOCABULARY), FinetuneConfig("sst2"))
    with problem.writing("test", str(tmp_path / "out")) as write:
        write(TextWindow([["a", "b"]], [4, 9], None, "test"), np.eye(2))
    assert (tmp_path / "out" / "SST-2.tsv").read_text() == "index\tprediction\n4\t0\n9\t1\n"
    assert problem.submission("dev") is None

    assert written("sst2", [0, 1], np.array([1, 0])) == "0\t1\n1\t0\n"
    assert written("rte", [5], [1]) == "5\tnot_entailment\n"
    assert written("ax", [0], [2]).endswith("0\tcontradiction\n")
    assert written("stsb", [0, 1, 2], [-0.5, 2.25, 7.0]).split()[1::2] == ["0.000", "2.250", "5.000"]
    with pytest.raises(ValueError, match="finite"):
        written("stsb", [0], [np.nan])


def test_scores_are_clipped_in_the_submission_alone():
    """Otherwise exports and `predict` in Python would answer differently from `run.py predict` on a file."""
    head = ClassificationConfig(("score",), REGRESSION)
    assert [row["score"] for row in plain_answers(head, np.array([[-0.5], [7.0]]))] == [-0.5, 7.0]


def test_the_published_averages():
    """The sources' averages: the paper's table 1 (both parts of MNLI, no WNLI), and GLUE's nine tasks for humans."""
    for system, average in (("BERT base", 79.6), ("BERT large", 82.1)):
        values = [score.value for task in GLUE.values() for score in task.published if score.system == system]
        assert len(values) == 9 and np.isclose(np.mean(values), average, atol=0.06)
    human = [[score.value for score in task.published if score.system == "human"] for task in GLUE.values()]
    means = [np.mean(values) for values in human if values]
    assert len(means) == 9 and np.isclose(np.mean(means), 87.1, atol=0.06)
