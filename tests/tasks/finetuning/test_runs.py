"""Several runs of one recipe: for each seed, each point of a grid, and each task of a benchmark."""

import json
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf
import yaml
from finetuning import finetune_config, spoil, write_sst2, write_tiny_bert
from said import listen
from tensorboard.plugins.hparams import plugin_data_pb2

import keras_bert
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.core import settings
from keras_bert.core.errors import UserError
from keras_bert.tasks.benchmarks import BENCHMARKS
from keras_bert.tasks.finetuning import runs as finetuning_runs
from keras_bert.tasks.finetuning.results import benchmark_lines
from keras_bert.tasks.finetuning.runs import FinetuningRuns, finetune_benchmark, point_name, summary


@pytest.mark.slow
def test_seeds_differ_and_their_median_comes_first(init, glue, tmp_path):
    config = finetune_config(init, **{"data.folder": glue, "training.epochs": 1, "optimizer.learning_rate": 2e-3})
    path = str(tmp_path / "runs")
    results = FinetuningRuns(config).seeds(path, [1, 2, 3])
    values = results["over_seeds"]["dev"]["loss"]["values"]
    assert len(set(values)) == 3
    assert results["splits"]["dev"]["loss"] == sorted(values)[1] == results["over_seeds"]["dev"]["loss"]["median"]
    assert results["over_seeds"]["dev"]["loss"]["std"] == pytest.approx(np.std(values, ddof=1))
    assert json.load(open(os.path.join(path, "results.json"), encoding="utf-8")) == results
    best = keras_bert.load(os.path.join(path, f"seed-{results['best_seed']}"))
    with open(os.path.join(path, "model", "README.md"), encoding="utf-8") as card:
        assert "Medians over the seeds 1, 2, 3" in card.read()
    kept = keras_bert.load(path)
    np.testing.assert_array_equal(
        kept.model.classifier.dense.kernel.numpy(), best.model.classifier.dense.kernel.numpy()
    )


@pytest.mark.slow
def test_a_sweep_is_compared_on_tensorboards_page(init, glue, tmp_path, monkeypatch):
    grid = {"batch_size": (8, 16), "learning_rate": (4.2e-4, 1e-9), "epochs": (1.0,)}
    monkeypatch.setattr(finetuning_runs, "GRID", grid)
    path = tmp_path / "sweep"
    found = FinetuningRuns(finetune_config(init, **{"data.folder": glue})).sweep(str(path))
    scores = [results["splits"]["dev"]["accuracy"] for _, results in found]
    assert len(found) == 4 and scores == sorted(scores, reverse=True)
    assert sorted(point_name(point) for point, _ in found) == sorted(at.name for at in path.iterdir() if at.is_dir())
    sessions, best = {}, {}
    for file in path.glob("*/tensorboard/validation/events*"):
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                if value.tag == "_hparams_/session_start_info":
                    content = plugin_data_pb2.HParamsPluginData.FromString(value.metadata.plugin_data.content)
                    sessions[file.parts[-4]] = {
                        name: item.number_value for name, item in content.session_start_info.hparams.items()
                    }
                if value.tag == "best/dev_accuracy":
                    best[file.parts[-4]] = float(tf.make_ndarray(value.tensor))
    assert len(sessions) == 4 and sorted(best.values(), reverse=True) == pytest.approx(scores)
    assert {item["optimizer.learning_rate"] for item in sessions.values()} == {5e-3, 1.2e-8}


@pytest.fixture
def began_with(monkeypatch, init, glue):
    """A function (folder, method of `FinetuningRuns`, settings…) -> ([settings that runs began with], lines)."""
    begun = []

    class Settled:
        def __init__(self, config, run, *_):
            run.claim(config)
            begun.append(config)

        def finetune(self):
            return {"splits": {"dev": {"accuracy": 0.5}}, "steps": 1}

    monkeypatch.setattr(finetuning_runs, "Finetuning", Settled)

    def function(path, method="one", *arguments, **overrides):
        begun.clear()
        lines = listen()
        values = {"task": "sst2", "init": init, "data": {"folder": glue}, "input": {"max_length": 24}}
        getattr(FinetuningRuns(FinetuneConfig.from_mapping(values, overrides)), method)(str(path), *arguments)
        return list(begun), lines

    return function


def test_the_default_rate_fits_the_width_and_a_given_one_wins(began_with, tmp_path):
    """At BERT-base's rate, small models learn nothing in the paper's three epochs."""
    (config,), lines = began_with(tmp_path / "run")
    assert config.optimizer.learning_rate == 3.6e-4
    assert "Learning rate 0.00036, the default for a model of 1 × 16." in lines
    (config,), lines = began_with(tmp_path / "other", **{"optimizer.learning_rate": 2e-5})
    assert config.optimizer.learning_rate == 2e-5
    assert not any(line.startswith("Learning rate") for line in lines)


def test_a_run_that_has_begun_keeps_its_rate(began_with, tmp_path):
    """After an upgrade with another default, the run would be refused or go on at another rate."""
    (config,), _ = began_with(tmp_path)
    old = settings.to_mapping(config)
    del old["optimizer"]["base_rate"]
    old["optimizer"]["learning_rate"] = 3e-5
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(old), encoding="utf-8")
    (tmp_path / "checkpoints" / "step-000000001").mkdir(parents=True)
    (config,), lines = began_with(tmp_path)
    assert config.optimizer.learning_rate == 3e-5
    assert "Learning rate 3e-05, with which the run began." in lines
    with pytest.raises(UserError, match="optimizer.learning_rate: was 3e-05, now 0.001"):
        began_with(tmp_path, **{"optimizer.learning_rate": 1e-3})


def test_all_seeds_have_the_rate_that_the_first_of_them_began_with(began_with, tmp_path, monkeypatch):
    """Otherwise one median would mix scores at the default rate with scores at another version's."""
    monkeypatch.setattr(FinetuningRuns, "_write_seeds", lambda *_: None)
    began_with(tmp_path, "seeds", [2], **{"optimizer.base_rate": 1e-5})
    (tmp_path / "seed-2" / "checkpoints" / "step-000000001").mkdir(parents=True)
    configs, _ = began_with(tmp_path, "seeds", [1, 2])
    assert [config.training.seed for config in configs] == [1, 2]
    assert [config.optimizer.learning_rate for config in configs] == [1.2e-4, 1.2e-4]


@pytest.mark.parametrize(("arguments", "first"), [(["seeds", [1, 2]], "seed-1"), (["sweep"], "batch_size-16-…")])
def test_runs_from_other_weights_are_refused_beside_those_that_began(
    began_with, tmp_path, monkeypatch, arguments, first
):
    """If MODEL is trained on between two seeds, their median would describe neither model."""
    monkeypatch.setattr(FinetuningRuns, "_write_seeds", lambda *_: None)
    run, bert = tmp_path / "run", write_tiny_bert(tmp_path / "bert")
    began_with(run, *arguments, init=bert)
    spoil(bert)
    began_with(run, *arguments, init=bert)
    (run / first / "checkpoints" / "step-000000001").mkdir(parents=True)
    began_with(run, *arguments, init=bert)
    write_tiny_bert(tmp_path / "bert")
    with pytest.raises(UserError, match="run: holds a run on other data .init, .*bert: SHA-256: was .*Restore"):
        began_with(run, *arguments, init=bert)


def test_a_sweep_tries_the_papers_rates_scaled_to_the_model(began_with, tmp_path):
    """A grid of rates at which a small model does not learn compares nothing."""
    configs, _ = began_with(tmp_path, "sweep")
    assert len(configs) == 18
    assert {config.optimizer.learning_rate for config in configs} == {6e-4, 3.6e-4, 2.4e-4}


@pytest.mark.parametrize("seeds", [(1, 2), (2, 1)])
def test_a_label_that_one_seed_alone_predicts_has_0_in_the_others(seeds):
    """Scores by label cover only labels that occur; the summary must list those of all seeds."""
    figures = {1: {"f1": 0.5, "f1_X": 0.25}, 2: {"f1": 0.7, "f1_Y": 1.0}}
    fixed = {"task": "pos", "main_metric": "f1", "per_cent": False, "steps": 1, "lasts": {}, "baseline": {}}
    results = {seed: {**fixed, "splits": {"dev": figures[seed]}, "seconds": 1.0, "warnings": []} for seed in seeds}
    found = summary(results)
    assert found["splits"]["dev"] == {"f1": pytest.approx(0.6), "f1_X": 0.125, "f1_Y": 0.5}
    assert found["best_seed"] == 2


def test_a_dropout_of_the_head_that_is_not_used_is_told(init, glue, tmp_path):
    """transformers trains a BERT's head with it; a user must know that it is ignored here."""
    shutil.copytree(init, tmp_path / "init")
    file, said = tmp_path / "init" / "config.json", listen()
    file.write_text(json.dumps({**json.loads(file.read_text()), "classifier_dropout": 0.3}))
    for changes in ({}, {"training.dropout": 0.2}):
        FinetuningRuns(finetune_config(str(tmp_path / "init"), **{"data.folder": glue, **changes}))
    assert sum("the classifier_dropout 0.3 of config.json is not used here" in line for line in said) == 1


def test_seeds_leave_the_folder_of_a_single_run_alone(init, glue, tmp_path):
    """The seeds would replace its model and its results."""
    (tmp_path / "config.yaml").write_text("task: sst2\n")
    with pytest.raises(UserError, match="that holds a run for each seed. Received: a fine-tuning run"):
        FinetuningRuns(finetune_config(init, **{"data.folder": glue})).seeds(str(tmp_path), [1, 2])
    assert os.listdir(tmp_path) == ["config.yaml"]


@pytest.fixture
def recipes(tmp_path):
    """Recipes of a task without files and of one that has them."""
    init, data = write_tiny_bert(tmp_path / "bert"), write_sst2(tmp_path / "glue", train=8, dev=8)
    return {task: finetune_config(init, task, **{"data.folder": data}) for task in ("rte", "sst2")}


def test_a_task_without_data_is_left_out(recipes, tmp_path, monkeypatch):
    monkeypatch.setattr(FinetuningRuns, "one", lambda self, path: {"task": self.problem.task.name})
    said = listen()
    assert finetune_benchmark("glue", recipes, str(tmp_path / "run")) == {"sst2": {"task": "sst2"}}
    written = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
    assert list(written["tasks"]) == ["sst2"] and "train.tsv, for the split 'train'" in written["left_out"]["rte"]
    assert any(line.startswith("Skipped rte: ") for line in said)
    with pytest.raises(UserError, match="glue: needs the data of at least one task"):
        finetune_benchmark("glue", {"rte": recipes["rte"]}, str(tmp_path / "none"))


def test_data_that_is_wrong_is_not_left_out(recipes, tmp_path):
    """The benchmark would seem to end well, without the task that the user wanted most."""
    with open(tmp_path / "glue" / "SST-2" / "dev.tsv", "a", encoding="utf-8") as stream:
        stream.write("no label\n")
    with pytest.raises(UserError, match="dev.tsv line 10: needs 2 cells"):
        finetune_benchmark("glue", recipes, str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def results(main, split="dev", **scores):
    return {
        "main_metric": main,
        "splits": {split: {"loss": 0.5, **scores}},
        "baseline": {split: dict.fromkeys(scores, 0.25)},
    }


def cells(name, found):
    return [line.split("  ") for line in benchmark_lines(BENCHMARKS[name], found)]


def row(name, found, number):
    return [cell.strip() for cell in cells(name, found)[number] if cell.strip()]


def test_superglue_averages_the_means_of_each_tasks_metrics():
    """CB counts once, as the mean of its F1 and accuracy; the published averages are over the same tasks."""
    found = {"cb": results("macro_f1", macro_f1=0.5, accuracy=0.7), "boolq": results("accuracy", accuracy=0.8)}
    assert row("superglue", found, 0) == ["boolq", "cb", "average"]
    assert row("superglue", found, 1) == ["this model (dev)", "80.0", "60.0", "70.0"]
    assert row("superglue", found, 2) == ["majority (dev)", "25.0", "25.0", "25.0"]
    assert row("superglue", found, 3) == ["BERT large (test)", "77.4", "79.7", "78.5"]


def test_glue_averages_the_main_metrics_without_wnli():
    found = {"wnli": results("accuracy", accuracy=0.1), "mrpc": results("f1", f1=0.9, accuracy=0.5)}
    assert row("glue", found, 0) == ["mrpc", "wnli", "average"]
    assert row("glue", found, 1) == ["this model (dev)", "90.0", "10.0", "90.0"]
    assert row("glue", found, 3) == ["BERT base (test)", "88.9", "-", "88.9"]
