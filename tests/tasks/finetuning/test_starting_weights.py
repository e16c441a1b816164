"""What a fine-tuned model starts from and keeps: frozen, random and replaced weights, and its dropout."""

import numpy as np
import pytest
import safetensors.numpy
from finetuning import VOCABULARY, finetune_config
from said import listen
from tiny import random_weights, without_dropout

import keras_bert
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.layers.embeddings import sinusoids
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.tasks.classification.network import BertForSequenceClassification
from keras_bert.tasks.finetuning.initial_weights import freeze
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.training.metrics_log import read_metrics
from keras_bert.training.variable_names import part_of, trainable_names


def test_freezing_leaves_the_encoder_as_it_was(init, glue, tmp_path):
    config = finetune_config(init, **{"data.folder": glue, "training.freeze": True, "training.epochs": 1})
    path = str(tmp_path / "run")
    FinetuningRuns(config).one(path)
    before, after = keras_bert.load(init), keras_bert.load(path)
    for old, new in zip(before.encoder.weights, after.encoder.weights, strict=True):
        np.testing.assert_array_equal(old.numpy(), new.numpy(), old.path)
    assert abs(after.model.classifier.dense.kernel.numpy()).max() > 0.01


@pytest.mark.parametrize("case", ["no pooler", "untrained", "trained", "from scratch"])
def test_an_untrained_pooler_is_not_frozen(tmp_path, case):
    """Masked LMs from elsewhere or without pairs train none: the head would read a random projection of [CLS]."""
    model, path = BertForPreTraining(without_dropout()), str(tmp_path / "model")
    if case != "untrained":
        random_weights(model)
    write_model_folder(path, model, VOCABULARY, lower_case=True)
    if case == "no pooler":
        weights = tmp_path / "model" / "model.safetensors"
        tensors = safetensors.numpy.load_file(weights)
        safetensors.numpy.save_file({name: tensors[name] for name in tensors if "pooler" not in name}, weights)
    config = finetune_config(path, **{"training.freeze": True, "from_scratch": case == "from scratch"})
    model = BertForSequenceClassification(model.config, 2)
    freeze(model, config, open_model_folder(path))
    expected = ["classifier"] if case == "trained" else ["classifier", "pooler"]
    assert sorted({part_of(name) for name in trainable_names(model)}) == expected


@pytest.mark.slow
def test_a_frozen_encoder_goes_on_as_it_was(init, glue, tmp_path):
    """A run resumes from its checkpoint alone, without reading `init` again."""
    path = tmp_path / "run"
    overrides = {"data.folder": glue, "training.freeze": True, "training.steps": 4}
    FinetuningRuns(finetune_config(init, **overrides)).one(str(path))
    (path / "results.json").unlink()
    FinetuningRuns(finetune_config(init, **{**overrides, "training.steps": 6})).one(str(path))
    before, after = keras_bert.load(init), keras_bert.load(str(path))
    for old, new in zip(before.encoder.weights, after.encoder.weights, strict=True):
        np.testing.assert_array_equal(old.numpy(), new.numpy(), old.path)


@pytest.mark.slow
def test_from_scratch_the_weights_are_not_those_of_init(init, glue, tmp_path):
    settings = {"from_scratch": True, "optimizer.learning_rate": 1e-9, "training.steps": 1}
    config = finetune_config(init, **{"data.folder": glue, **settings})
    path = str(tmp_path / "run")
    FinetuningRuns(config).one(path)
    before, after = (keras_bert.load(folder).encoder.embeddings.word_embeddings.numpy() for folder in (init, path))
    assert abs(before - after).max() > 0.01


def test_replaced_weights_are_those_of_a_new_model_and_all_others_are_kept(init, glue, tmp_path):
    replaced = {"initialization.attention": "mimetic", "initialization.position_embeddings": "sinusoidal"}
    settings = {"optimizer.learning_rate": 1e-9, "training.steps": 1, "data.folder": glue}
    path, lines = str(tmp_path / "run"), listen()
    FinetuningRuns(finetune_config(init, **settings, **replaced)).one(path)
    before, after = (keras_bert.load(folder).encoder for folder in (init, path))
    for old, new in zip(before.weights, after.weights, strict=True):
        is_kept = np.allclose(old.numpy(), new.numpy(), atol=1e-4)
        expected = not any(part in old.path for part in ("position_embeddings", "query/", "key/"))
        assert is_kept == expected, old.path
    positions = sinusoids(*after.embeddings.position_embeddings.shape)
    found = after.embeddings.position_embeddings.numpy()
    np.testing.assert_allclose(found / found.std(), positions / positions.std(), atol=1e-3)
    assert any("attention: replaced, mimetic" in line for line in lines)


@pytest.mark.slow
def test_dropout_of_the_recipe_replaces_the_models_own(init, glue, tmp_path):
    """Otherwise a model pretrained without dropout could not be fine-tuned with any."""
    losses = {}
    for rate in (None, 0.0, 0.5):
        steps = {"training.steps": 2, "training.log_every": 1, "training.dropout": rate}
        path = tmp_path / str(rate)
        FinetuningRuns(finetune_config(init, **{"data.folder": glue, **steps})).one(str(path))
        losses[rate] = [line["loss"] for line in read_metrics(str(path / "metrics.jsonl")) if "loss" in line]
        after = keras_bert.load(str(path)).config
        assert rate is None or (after.hidden_dropout_prob, after.attention_probs_dropout_prob) == (rate, rate)
    assert losses[0.0] == losses[None] != losses[0.5]
