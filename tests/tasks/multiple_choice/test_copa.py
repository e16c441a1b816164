"""COPA, SuperGLUE's questions with two choices: its files, TFDS and the submission."""

import json

import numpy as np
import pytest
from finetuning import VOCABULARY
from superglue_folder import EXAMPLES, prepare_superglue, write_lines, write_superglue

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.core.errors import UserError
from keras_bert.tasks.multiple_choice.data import choice_examples, copa_rows
from keras_bert.tasks.problem import open_problem
from keras_bert.tasks.sources import task_folder
from keras_bert.text.wordpiece import WordPieceTokenizer


def problem_of(folder):
    config = FinetuneConfig.from_mapping({"task": "copa", "data": {"folder": folder}, "input": {"max_length": 24}})
    return open_problem(config, WordPieceTokenizer(VOCABULARY))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_superglue(tmp_path_factory.mktemp("superglue"))


def test_the_files_and_tfds_give_the_same(folder, tmp_path):
    """The question stands in words before both choices; numbers and labels are those of the file."""
    ours, theirs = problem_of(folder), problem_of(prepare_superglue(folder, tmp_path, "COPA"))
    for split in ("train", "dev", "test"):
        [found], [again] = (problem.windows(split, labelled=True) for problem in (ours, theirs))
        assert [row[1:5] for row in found.examples] == [row[1:5] for row in again.examples]
        assert [row.id for row in found.examples] == [0, 1]
        assert found.labels == again.labels == (None if split == "test" else [1, 0])
    assert [row.beginning for row in found.examples] == ["What was the cause of this?", "What happened as a result?"]
    assert found.examples[1].choices == ["w5 .", "w6 ."]


def test_the_submission_is_as_the_server_wants_it(folder, tmp_path):
    problem = problem_of(folder)
    assert problem.output_kind("test") == "folder" and problem.output_kind("dev") == "file"
    [window] = problem.windows("test")
    with problem.writing("test", str(tmp_path)) as write:
        write(window, [np.array([0.0, 1.0]), np.array([2.0, 1.0])])
    written = (tmp_path / "COPA.jsonl").read_text().splitlines()
    assert list(map(json.loads, written)) == [{"idx": 0, "label": 1}, {"idx": 1, "label": 0}]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"question": "reason"}, "line 2: needs the question cause or effect. Received: 'reason'"),
        ({"question": ["cause"]}, "line 2: needs the question cause or effect. Received: ['cause']"),
        ({"label": 2}, "needs a label from 0 to 1. Received: 2"),
        ({"choice2": ""}, "needs a text for its choice 1. Received: ''"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, change, message):
    first = EXAMPLES["COPA"][0]
    path = write_lines(tmp_path / "val.jsonl", [first, {**first, **change}])
    with pytest.raises(UserError) as error:
        choice_examples(path, copa_rows(path))
    assert message in str(error.value) and f"{path} line 2" in str(error.value)


def test_a_submission_needs_the_numbers_of_the_examples(tmp_path):
    row = {key: value for key, value in EXAMPLES["COPA"][0].items() if key != "idx"}
    write_lines(tmp_path / "test.jsonl", [row])
    problem = problem_of(str(tmp_path))
    [window] = problem.windows("test")
    with (
        pytest.raises(UserError, match="needs an idx for every example"),
        problem.writing("test", str(tmp_path)) as write,
    ):
        write(window, [np.zeros(2)])
    assert not (tmp_path / "COPA.jsonl").exists()


def test_answers_to_a_test_file_of_ones_own_are_no_submission(tmp_path):
    """As for the other tasks of SuperGLUE: the server has other examples."""
    path = write_lines(tmp_path / "own.jsonl", EXAMPLES["COPA"])
    config = FinetuneConfig.from_mapping({"task": "copa", "data": {"train": path, "dev": path, "test": path}})
    assert open_problem(config, WordPieceTokenizer(VOCABULARY)).output_kind("test") == "file"


def test_the_folder_of_a_task_may_be_the_benchmarks(folder):
    assert task_folder(folder, ["COPA"]) == f"{folder}/COPA" and task_folder(folder, ["none"]) == folder
