"""What an earlier version wrote still opens: a model folder, prepared shards, and a run stopped at a checkpoint.

tests/written_before was written by the version of November 2026 that still had all heads in `config/heads.py`. The run
trains by recipe.json on the shards and was stopped after its checkpoint at step 2 of 4; answers.json has the
model's answers, and the losses with which that version went on from there: without dropout, whose masks may change from
version to version. They stay as they are: a later format adds files.
"""

import json
import os
import shutil

import numpy as np
import pytest
from said import listen

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.inference.loading import load
from keras_bert.layers.dropout import Dropout
from keras_bert.tasks.pretraining.run import pretrain
from keras_bert.training.metrics_log import read_metrics
from keras_bert.training.run_folder import RunFolder

WRITTEN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "written_before")


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A copy of the files, and in it the working directory, to which the run's paths are relative."""
    monkeypatch.chdir(shutil.copytree(WRITTEN, tmp_path / "written"))
    with open("answers.json", encoding="utf-8") as stream:
        return json.load(stream)


def test_a_model_folder_answers_as_before(written):
    bert = load("model")
    assert bert.report.made_new == [] and bert.report.unused == [] and bert.folder.task["task"] == "text"
    answers = [[answer.probabilities[label] for label in ("no", "yes")] for answer in bert.predict(written["texts"])]
    np.testing.assert_allclose(answers, written["probabilities"], rtol=1e-5)


@pytest.mark.slow
def test_a_run_goes_on_from_its_checkpoint_on_its_shards(written, monkeypatch):
    monkeypatch.setattr(Dropout, "call", lambda self, inputs, training=False: inputs)
    said = listen()
    with open("recipe.json", encoding="utf-8") as stream:
        config = PretrainConfig.from_mapping(json.load(stream))
    run = RunFolder("run")
    pretrain(config, run)
    assert "Resuming from step 2." in said
    training = [line for line in read_metrics(run.metrics_file) if "grad_norm" in line]
    assert [line["step"] for line in training] == [2, 4]
    for line, before in zip(training, written["losses"], strict=True):
        np.testing.assert_allclose([line[name] for name in before], list(before.values()), rtol=1e-5)
