"""Data that a run reads as it is, known by names, sizes and marks; test_finetuning_again.py has other data."""

import json
import os
import types

import pytest

from keras_bert.core.errors import UserError
from keras_bert.tasks.run_data import TEACHER, data_changes, require_same_data, require_same_model, require_same_text
from keras_bert.training.run_folder import RunFolder


def test_text_that_changed_is_refused_once_something_was_learned(tmp_path):
    """The resumed run would read other batches and say nothing."""
    (tmp_path / "text").mkdir()
    file = tmp_path / "text" / "a.txt"
    file.write_text("one\n")
    run, entries = RunFolder(str(tmp_path / "run")), [str(tmp_path / "text")]
    require_same_text(run, entries)
    file.write_text("one\ntwo\n")
    require_same_text(run, entries)
    run.write_results({"steps": 1})
    require_same_text(run, entries)
    file.write_text("one\n")
    with pytest.raises(
        UserError, match=r"holds a run on other data .\['.*a.txt', 8, '\w+'\], now \['.*a.txt', 4, .*--fresh"
    ):
        require_same_text(run, entries)
    file.write_text("one\ntwo\n")
    (tmp_path / "text" / "b.txt").write_text("three\n")
    with pytest.raises(UserError, match="1 in all, now 2"):
        require_same_text(run, entries)


def test_a_split_that_changed_is_told_and_another_is_not(tmp_path):
    """Scores of an edited file beside those in results.json would look like another model's."""
    file, run = tmp_path / "dev.jsonl", tmp_path / "run"
    file.write_text('{"text": "one"}\n')
    problem = types.SimpleNamespace(origin=lambda split: str(file), rows=lambda split: [0], dev_splits=["dev"])
    require_same_data(RunFolder(str(run)), problem)
    assert data_changes(str(run), problem, ["dev", "test"]) == data_changes(str(tmp_path), problem, ["dev"]) == []
    file.write_text('{"text": "two"}\n')
    [line] = data_changes(str(run), problem, ["dev", "test"])
    assert line.startswith(f"Not the data that {run} was trained with: dev, {file}: SHA-256: was ")
    given = types.SimpleNamespace(origin=lambda split: "other.jsonl")
    assert data_changes(str(run), given, ["dev"]) == []


def test_text_given_as_objects_moves_with_its_run(tmp_path):
    """The text is a file in the run's folder, and must not be taken for another when the folder moves."""
    run = RunFolder(str(tmp_path / "run"))
    (tmp_path / "run" / "given").mkdir(parents=True)
    (tmp_path / "run" / "given" / "text.jsonl").write_text("one\n")
    require_same_text(run, [f"{run.path}/given/text.jsonl"])
    run.write_results({"steps": 1})
    moved = RunFolder(str((tmp_path / "run").rename(tmp_path / "moved")))
    require_same_text(moved, [f"{moved.path}/given/text.jsonl"])
    (tmp_path / "moved" / "given" / "text.jsonl").write_text("two\n")
    with pytest.raises(UserError, match="holds a run on other data .*given/text.jsonl', 4"):
        require_same_text(moved, [f"{moved.path}/given/text.jsonl"])


def test_text_rewritten_to_the_same_size_and_time_is_refused(tmp_path):
    """The resumed run would read other batches: `rsync -t` and `cp -p` keep the time of what they copy."""
    file, run = tmp_path / "a.txt", RunFolder(str(tmp_path / "run"))
    file.write_bytes(b"one two three\n" * 10_000)
    require_same_text(run, [str(file)])
    run.write_results({"steps": 1})
    require_same_text(run, [str(file)])
    before = os.stat(file)
    file.write_bytes(b"one two three\n" * 5_000 + b"two one three\n" * 5_000)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(UserError, match=r"holds a run on other data .*, 140000, '\w+'\], now .*, 140000, '\w+'\]"):
        require_same_text(run, [str(file)])


def test_a_run_of_an_older_version_goes_on_and_is_bound_to_more(tmp_path):
    """It recorded only names and sizes."""
    file, run = tmp_path / "a.txt", RunFolder(str(tmp_path / "run"))
    file.write_text("one\n")
    run.write_results({"steps": 1})
    (tmp_path / "run" / "data.json").write_text(json.dumps({"text": [[str(file), 4]]}))
    require_same_text(run, [str(file)])
    file.write_text("two\n")
    with pytest.raises(UserError, match="holds a run on other data"):
        require_same_text(run, [str(file)])


def test_the_tables_of_a_glob_are_known_by_their_content(tmp_path):
    """Otherwise a run would go on with as many other examples. Older runs recorded only their number."""
    (tmp_path / "train").mkdir()
    first, second = (tmp_path / "train" / name for name in ("a.csv", "b.csv"))
    first.write_text("text,label\none,1\n")
    second.write_text("text,label\ntwo,0\n")
    origin, run = f"{tmp_path}/train/*.csv", RunFolder(str(tmp_path / "run"))
    problem = types.SimpleNamespace(dev_splits=(), origin=lambda split: origin, rows=lambda split: range(2))
    run.write_results({"steps": 1})
    (tmp_path / "run" / "data.json").write_text(json.dumps({"train": {"from": origin, "examples": 2}}))
    require_same_data(run, problem)
    require_same_data(run, problem)
    second.write_text("text,label\nsix,0\n")
    with pytest.raises(UserError, match=r"train, .*train/\*.csv: SHA-256: was \w{12}…, now \w{12}…"):
        require_same_data(run, problem)
    problem.rows = lambda split: range(3)
    (tmp_path / "run" / "data.json").write_text(json.dumps({"train": {"from": origin, "examples": 2}}))
    with pytest.raises(UserError, match=r"train, .*train/\*.csv: examples: was 2, now 3"):
        require_same_data(run, problem)


def test_a_teacher_given_before_anything_was_learned_is_forgotten(tmp_path):
    """Otherwise the run would be bound to it, and refuse to resume with the teacher that it learned from."""
    run = RunFolder(str(tmp_path / "run"))
    first, second = (types.SimpleNamespace(name=name, fingerprint=name * 64) for name in "ab")
    require_same_model(run, TEACHER, first)
    require_same_model(run, TEACHER, second)
    run.write_results({"steps": 1})
    require_same_model(run, TEACHER, second)
    with pytest.raises(UserError, match="holds a run on other data .teacher, a: SHA-256"):
        require_same_model(run, TEACHER, first)
