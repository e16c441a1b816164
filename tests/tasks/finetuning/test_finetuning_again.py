"""Resuming fine-tuning: on the data it began with, in spite of damage, and never past its end."""

import json
import os
import shutil
import time

import pytest
from faults import faults, no_number
from finetuning import finetune_config, write_reviews
from pretraining import stopped_at
from said import listen

from keras_bert.core import files
from keras_bert.core.errors import RunStopped, UserError
from keras_bert.tasks.finetuning.run import Finetuning
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.tasks.run_data import require_same_data
from keras_bert.training.metrics_log import read_metrics
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.stop_request import StopRequest
from tools import compare_runs


class Killed(BaseException):
    pass


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    return {
        "data.train": write_reviews(folder / "train.jsonl", 80, 1),
        "data.dev": write_reviews(folder / "dev.jsonl", 24, 2),
    }


def evaluations(path):
    return [line["step"] for line in read_metrics(RunFolder(path).metrics_file) if "eval_loss" in line]


def one(path, config):
    return FinetuningRuns(config).one(str(path))


def killed_before_results(path, config, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Finetuning, "write_results", lambda *_: (_ for _ in ()).throw(Killed))
        one(path, config)


@pytest.mark.slow
def test_killed_after_patience_ended_it_a_run_does_not_train_on(init, table, tmp_path, monkeypatch):
    """It would train to the next validation, with other results than those of an uninterrupted run."""
    patient = {**table, "optimizer.learning_rate": 1e-9, "training.patience": 2, "training.epochs": 9}
    config, path = finetune_config(init, "text", **patient), tmp_path / "run"
    killed_before_results(path, config, monkeypatch)
    assert evaluations(path) == [10, 20, 30]
    results = one(path, config)
    assert evaluations(path) == [10, 20, 30]
    assert (results["steps"], results["best_step"]) == (30, 10)


@pytest.mark.slow
def test_a_rollback_stopped_before_the_next_checkpoint_ends_as_one_that_was_not(init, table, tmp_path, monkeypatch):
    """The gradient of step 14 is not finite; a line every 4 steps, a checkpoint every epoch of 10, the newest kept."""
    config, at = finetune_config(init, "text", **table, **{"training.epochs": 2}), {14: [no_number]}
    results = []
    with faults(monkeypatch, at):
        results.append(one(tmp_path / "straight", config))
    with faults(monkeypatch, at), stopped_at(12, monkeypatch, times=2):
        one(tmp_path / "stopped", config)
    results.append(one(tmp_path / "stopped", config))
    compared = compare_runs.compare(str(tmp_path / "straight"), str(tmp_path / "stopped"))
    assert all(number > 0 and not different for _, number, different in compared), compared
    lines = read_metrics(RunFolder(str(tmp_path / "stopped")).metrics_file)
    (rollback,) = [line for line in lines if "rollback" in line]
    assert (rollback["step"], rollback["bad_step"], rollback["left_out"]) == (10, 14, [[0, 10, 4]])
    assert results[0]["steps"] == results[1]["steps"] == 20


def test_all_runs_of_a_command_share_its_time(init, table, tmp_path, monkeypatch):
    """Each seed would have the whole limit to itself, with start-up on top."""
    config = finetune_config(init, "text", **table, **{"training.max_minutes": 30.0, "training.jit_compile": False})
    monotonic, finetune = time.monotonic, Finetuning.finetune
    runs = FinetuningRuns(config)

    def finetune_after_an_hour(run):
        monkeypatch.setattr("time.monotonic", lambda: monotonic() + 3600.0)
        return finetune(run)

    monkeypatch.setattr(Finetuning, "finetune", finetune_after_an_hour)
    with pytest.raises(RunStopped, match="Stopped by the time limit after step 1,"):
        runs.seeds(str(tmp_path / "runs"), [1, 2])


@pytest.mark.slow
def test_a_damaged_best_is_told_on_going_on_and_the_run_ends_with_the_next_best(init, table, tmp_path, monkeypatch):
    """Otherwise the error would come only after all training was done."""
    config = finetune_config(init, "text", **table, **{"optimizer.learning_rate": 1e-9, "training.epochs": 3})
    path, asked = tmp_path / "run", []
    with monkeypatch.context() as patch, pytest.raises(RunStopped):
        patch.setattr(StopRequest, "reason", lambda self: asked.append(1) or ("a test" if len(asked) == 15 else None))
        one(path, config)
    best = path / "checkpoints" / "step-000000010"
    next(best.glob("checkpoint.data*")).write_bytes(b"")
    said = listen()
    results = one(path, config)
    assert [line for line in said if "step-000000010" in line and "no longer counts" in line] == [
        line for line in said if "step-000000010" in line
    ]
    assert results["best_step"] == 20 and results["steps"] == 30
    assert (path / "model" / "config.json").exists()


@pytest.fixture(scope="module")
def finished(init, table, tmp_path_factory):
    """(path, config, results) of a run to its end."""
    path = tmp_path_factory.mktemp("runs") / "run"
    config = finetune_config(init, "text", **table, **{"training.epochs": 1})
    return path, config, one(path, config)


@pytest.fixture
def edited(table, tmp_path):
    """A function (split, content -> content) that edits a file until the test ends."""
    kept = {split: shutil.copy2(path, tmp_path / split) for split, path in table.items()}

    def edit(split, change):
        with open(table[split], "r+", encoding="utf-8") as stream:
            content = change(stream.read())
            stream.seek(0)
            stream.write(content)
            stream.truncate()

    yield edit
    for split, path in kept.items():
        shutil.copy2(path, table[split])


@pytest.mark.parametrize(
    ("split", "change", "told"),
    [
        (
            "data.train",
            lambda content: content[content.index("\n") + 1 :],
            r"train, .*train.jsonl: bytes: was [\d,]+, now",
        ),
        (
            "data.dev",
            lambda content: content.replace("w1", "w2", 1),
            r"dev, .*dev.jsonl: SHA-256: was \w{12}…, now \w{12}…",
        ),
    ],
)
def test_other_data_under_the_same_command_are_refused(finished, edited, split, change, told):
    """The run would go on with other batches, or show the old results as if they came from the new file."""
    path, config, _ = finished
    edited(split, change)
    with pytest.raises(UserError, match=f"holds a run on other data .{told}.*--fresh"):
        one(path, config)


def test_the_same_data_with_another_time_are_the_same(finished, table):
    path, config, results = finished
    os.utime(table["data.train"], (1, 1))
    assert one(path, config) == results


def test_a_start_that_learned_nothing_binds_nobody(finished, edited, tmp_path):
    path, config, _ = finished
    new = tmp_path / "new"
    shutil.copytree(path, new, ignore=shutil.ignore_patterns("checkpoints", "results.json"))
    edited("data.train", lambda content: content[content.index("\n") + 1 :])
    problem = FinetuningRuns(config).problem
    before = json.loads((new / "data.json").read_text())
    require_same_data(RunFolder(str(new)), problem)
    after = json.loads((new / "data.json").read_text())
    assert after["dev"] == before["dev"] and after["train"]["bytes"] < before["train"]["bytes"]


def test_files_that_were_not_touched_are_not_read_for_it(finished, monkeypatch):
    """They may be large or far away."""
    path, config, _ = finished
    problem = FinetuningRuns(config).problem
    require_same_data(RunFolder(str(path)), problem)
    monkeypatch.setattr(files, "sha256", pytest.fail)
    require_same_data(RunFolder(str(path)), problem)


def test_a_data_set_without_a_file_is_known_by_its_name_and_size(tmp_path):
    class Problem:
        dev_splits = ()
        count = 3

        def origin(self, split):
            return f"glue/sst2:2.0.0 {split}"

        def rows(self, split):
            return range(self.count)

    run, problem = RunFolder(str(tmp_path)), Problem()
    require_same_data(run, problem)
    run.write_results({})
    require_same_data(run, problem)
    problem.count = 4
    with pytest.raises(UserError, match=r"train, glue/sst2:2.0.0 train: examples: was 3, now 4"):
        require_same_data(run, problem)
