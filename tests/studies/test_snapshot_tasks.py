"""Fine-tuning from snapshots: which ones, and which seeds are trained."""

import json
import os
import types

import pytest

from keras_bert.config.studies import TaskPlan
from keras_bert.studies.snapshots import finetuned, spread
from keras_bert.studies.study import StudyFolder


def test_steps_are_spread_by_their_ratios():
    """A model learns as much from one step to the tenth as from the tenth to the hundredth."""
    steps = [*range(100, 1700, 100)]
    assert spread(steps, 5) == [100, 200, 400, 800, 1600]
    assert spread(steps, None) == spread(steps, 16) == steps
    assert spread([100, 1500, 1600], 2) == [100, 1600]


def results(score):
    """Results as a run of one seed writes them."""
    figures = {"dev": {"accuracy": score}}
    return {
        "task": "sst2",
        "main_metric": "accuracy",
        "per_cent": False,
        "steps": 2,
        "lasts": {},
        "seconds": 1.0,
        "warnings": [],
        "splits": figures,
        "baseline": figures,
    }


@pytest.fixture
def trained(monkeypatch):
    """The seeds of each run that was made, by a stand-in for `finetune --seeds`."""
    made = []

    def write(folder, values):
        os.makedirs(f"{folder}/model")
        with open(f"{folder}/results.json", "w") as stream:
            json.dump(values, stream)

    def run_command(folder, changes, command, options):
        assert os.path.exists(f"{options['--init']}/config.json")
        seeds = [int(seed) for seed in options["--seeds"].split(",")]
        made.append(seeds)
        for seed in seeds:
            write(f"{folder}/seed-{seed}", results(seed / 10))
        write(folder, {**results(0.5), "seeds": seeds})

    monkeypatch.setattr("keras_bert.studies.runs.run_command", run_command)
    return made


def write_snapshot(step, folder):
    os.makedirs(folder)
    open(f"{folder}/config.json", "w").close()


def test_a_snapshot_that_an_interrupted_study_left_is_not_used(tmp_path, trained):
    """It may belong to another run, whose weights would be fine-tuned under this one's name."""
    written = []

    def write(step, folder):
        written.append(step)
        write_snapshot(step, folder)

    write_snapshot(4, tmp_path / "snapshots" / "step-4")
    snapshots = types.SimpleNamespace(run=types.SimpleNamespace(path="runs/other"), write=write)
    with StudyFolder(str(tmp_path)) as study:
        finetuned(study, snapshots, [4], {"reviews": TaskPlan("glue", [0.01, 0.1], task="sst2")}, "data", 1)
    assert written == [4]


def test_seeds_may_be_added_though_the_models_of_the_finished_ones_are_gone(tmp_path, trained):
    """Only new seeds are trained, from a snapshot written for them; the results cover all."""
    snapshots = types.SimpleNamespace(run=types.SimpleNamespace(path="runs/mini"), write=write_snapshot)
    plans = {"reviews": TaskPlan("glue", [0.01], task="sst2")}

    def scores(seeds):
        with StudyFolder(str(tmp_path)) as study:
            found = finetuned(study, snapshots, [4], plans, "data", seeds)[4]["reviews"]
        assert found["seeds"] == [*range(1, seeds + 1)]
        assert not any(path.name in ("model", "snapshots") for path in tmp_path.rglob("*"))
        return found["over_seeds"]["dev"]["accuracy"]["values"]

    assert scores(1) == scores(1) == [0.1]
    assert scores(3) == scores(3) == [0.1, 0.2, 0.3]
    assert trained == [[1], [2, 3]]
    assert scores(2) == [0.1, 0.2]
    assert scores(3) == [0.1, 0.2, 0.3]
    assert trained == [[1], [2, 3]]
