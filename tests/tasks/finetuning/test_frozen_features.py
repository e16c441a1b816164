"""A tagger over frozen features, trained whole on a task that it can learn."""

import json
import os
import shutil

import numpy as np
import pytest
from finetuning import VOCABULARY, WORDS, finetune_config, write_tiny_bert
from said import listen
from tiny import without_dropout, write_random

import keras_bert
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.core.errors import UserError
from keras_bert.data.batches.length_batches import LengthBatches
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.tasks.finetuned_model import FinetunedModel
from keras_bert.tasks.finetuning.frozen_features import FrozenFeatures
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.tasks.problem import open_problem
from keras_bert.training.strategy import make_strategy


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """Four layers deep."""
    model = BertForPreTraining(
        without_dropout(num_hidden_layers=4, max_position_embeddings=32, vocab_size=len(VOCABULARY))
    )
    return write_random(tmp_path_factory.mktemp("features") / "bert", model, VOCABULARY)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """Columns in which the words to find are persons, six words a sentence: `{split: path}`."""
    folder, paths, random = tmp_path_factory.mktemp("words"), {}, np.random.default_rng(0)
    for split, count in (("train", 120), ("dev", 30)):
        sentences = [
            "\n".join(f"{WORDS[word]} {'B-PER' if word < 6 else 'O'}" for word in random.integers(0, 12, 6))
            for _ in range(count)
        ]
        paths[split] = str(folder / f"{split}.txt")
        with open(paths[split], "w", encoding="utf-8") as stream:
            stream.write("\n\n".join(sentences) + "\n")
    return paths


def config_of(bert, words, kind="concat_last4", **overrides):
    values = {"features.kind": kind, "features.lstm_size": 16, "optimizer.learning_rate": 2e-2}
    data = {f"data.{split}": path for split, path in words.items()}
    return finetune_config(bert, "ner", **{**values, **data, **overrides})


def losses(path):
    with open(os.path.join(path, "metrics.jsonl"), encoding="utf-8") as stream:
        return [line["loss"] for line in map(json.loads, stream) if "loss" in line]


@pytest.mark.slow
def test_it_learns_and_its_folder_answers_alike(bert, words, tmp_path):
    """Features are computed once; the run's folder and its model's folder both give the run's figures again."""
    said, path = listen(), str(tmp_path / "run")
    results = FinetuningRuns(config_of(bert, words, **{"training.epochs": 6})).one(path)
    assert results["splits"]["dev"]["f1"] > 0.95
    told = [line for line in said if line.startswith("Features of")]
    assert len(told) == 1 and "(train, dev)" in told[0] and "kept in" in told[0]
    with open(os.path.join(path, "model", "config.json"), encoding="utf-8") as stream:
        config = json.load(stream)
    assert config["architectures"] == ["BertModel"] and config["id2label"]["1"] == "B-PER"
    own = {"architecture": "BertFeatureTagger", "features": "concat_last4", "lstm_size": 16}
    assert config["keras_bert"] == {**own, "task": "ner", "max_length": 24}
    before, after = keras_bert.load(bert), keras_bert.load(path)
    for old, new in zip(before.encoder.weights, after.encoder.weights, strict=True):
        np.testing.assert_array_equal(old.numpy(), new.numpy(), old.path)
    assert after.head.features == "concat_last4" and not after.report.made_new and not after.report.unused
    for folder in (path, os.path.join(path, "model")):
        figures = FinetunedModel(folder, {"dev": words["dev"]}).evaluate("dev")
        assert figures["f1"] == results["splits"]["dev"]["f1"]
        assert figures["loss"] == pytest.approx(results["splits"]["dev"]["loss"], abs=1e-5)


@pytest.mark.slow
def test_what_was_computed_once_is_read_by_others(bert, words, tmp_path):
    """Runs over the same layers share them, whatever use they make of them; other layers, weights or rows do not."""
    folder, tokenizer = open_model_folder(bert), keras_bert.load(bert).tokenizer
    strategy, said = make_strategy("one"), listen()

    def give(kind, scale=1.0, split="dev"):
        problem = open_problem(config_of(bert, words, kind), tokenizer)
        model = problem.make_model(folder.config)
        folder.load_into(model)
        model.encoder.embeddings.word_embeddings.assign(scale * model.encoder.embeddings.word_embeddings)
        rows = problem.rows(split)
        said.clear()
        FrozenFeatures(model, strategy, 8, 0, str(tmp_path / "kept")).give({split: rows})
        return model, rows

    def is_computed():
        return any("are computed once" in line for line in said)

    model, rows = give("concat_last4")
    assert is_computed()
    batch = next(iter(LengthBatches(rows, 30, 0, 0, [8], shuffle=False).all_batches()))
    assert batch["features"].shape == (30, 8, 4, 16)
    states = model.encoder({name: batch[name] for name in batch if name.startswith("input_")})["hidden_states"]
    np.testing.assert_allclose(batch["features"], np.stack(states[-4:], axis=2), rtol=0, atol=1e-5)
    _, again = give("weighted_last4")
    assert not is_computed() and again.token_files["features"].path == rows.token_files["features"].path
    for other in ({"kind": "last"}, {"kind": "concat_last4", "scale": 1.01}, {"kind": "last", "split": "train"}):
        give(**other)
        assert is_computed()
    os.truncate(rows.token_files["features"].path, 1000)
    give("concat_last4")
    assert is_computed() and "The features are computed again." in said[0]


@pytest.mark.slow
def test_a_run_that_goes_on_gives_the_same_numbers(bert, words, tmp_path):
    """Bit for bit, from the features that the first start computed."""
    whole, broken = str(tmp_path / "whole"), str(tmp_path / "broken")
    often = {"training.log_every": 1, "training.checkpoint_every": 5, "training.keep_checkpoints": 9}
    config = config_of(bert, words, "weighted_all", **often, **{"training.epochs": 1})
    FinetuningRuns(config).one(whole)
    shutil.copytree(whole, broken)
    for name in ("results.json", "model", "checkpoints/step-000000010", "checkpoints/step-000000015"):
        path = os.path.join(broken, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    said = listen()
    FinetuningRuns(config).one(broken)
    assert "Resuming from step 5." in said and not any("are computed once" in line for line in said)
    assert losses(broken) == losses(whole) and len(losses(whole)) == 15
    one, other = (keras_bert.load(path).model for path in (whole, broken))
    for weight, again in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(weight.numpy(), again.numpy(), weight.path)
    assert np.ptp(one.tagger.mix.layer_weights.numpy()) > 0


def test_a_shallow_model_is_refused_before_anything_is_written(words, tmp_path):
    config = config_of(write_tiny_bert(tmp_path / "bert"), words)
    with pytest.raises(UserError, match="need a model with at least 4 layers. Received: one with 1"):
        FinetuningRuns(config).one(str(tmp_path / "run"))
    assert os.listdir(tmp_path) == ["bert"]


def test_several_workers_are_refused(bert, words, monkeypatch):
    workers = json.dumps({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}})
    config = config_of(bert, words, **{"training.strategy": "one"})
    monkeypatch.setenv("TF_CONFIG", workers)
    with pytest.raises(UserError, match="features: need one process. Received: 2 workers"):
        FinetuningRuns(config)
