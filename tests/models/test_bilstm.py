"""A BiLSTM between an encoder that is trained and the heads of every kind."""

import dataclasses
import json
import os

import numpy as np
import pytest
from coming_back import assert_a_keras_file_keeps
from finetuning import finetune_config, write_sst2, write_tiny_bert
from said import listen
from served import columns_of, write_served
from shortened import shortened
from tiny import pretraining_batch, random_weights, without_dropout

import keras_bert
from keras_bert.checkpoints.writing import convert_folder
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.core.errors import UserError
from keras_bert.export.serving_function import serving_function
from keras_bert.layers.bilstm import BiLstm
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.network import BertForSequenceClassification
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.tasks.multiple_choice.task import MultipleChoiceConfig
from keras_bert.tasks.problem import open_problem
from keras_bert.tasks.question_answering.task import SpanExtractionConfig
from keras_bert.tasks.tagging.head import TokenClassificationConfig

HEADS = {
    "single": ClassificationConfig(("no", "maybe", "yes"), bilstm_size=6),
    "tagging": TokenClassificationConfig(("O", "B-X", "I-X"), bilstm_size=6),
    "answering": SpanExtractionConfig(bilstm_size=6),
    "choice": MultipleChoiceConfig(bilstm_size=6),
}


def test_each_direction_ends_where_the_row_does():
    """Against the plain layers of Keras on each row without its padding."""
    layer, rng = BiLstm(5, 3), np.random.default_rng(0)
    layer.build()
    for variable in layer.weights:
        variable.assign(rng.normal(0, 0.5, variable.shape))
    states, lengths = rng.normal(size=(3, 7, 5)).astype("float32"), (7, 1, 4)
    mask = np.arange(7) < np.array(lengths)[:, None]
    found, pooled = (value.numpy() for value in layer(states, mask))
    for row, length in enumerate(lengths):
        alone = states[row : row + 1, :length]
        for lstm in layer.lstms:
            ahead = lstm.forward_layer(alone)
            back = lstm.backward_layer(alone)[:, ::-1]
            alone = np.concatenate([ahead, back], axis=-1)
        np.testing.assert_allclose(found[row, :length], alone[0], rtol=1e-5, atol=1e-6)
        assert not found[row, length:].any()
        np.testing.assert_allclose(pooled[row], [*alone[0, -1, :3], *alone[0, 0, 3:]], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", shortened(HEADS))
def test_its_folder_opens_again_and_answers_alike_when_served(kind, tmp_path):
    path = write_served(tmp_path / "model", kind, HEADS[kind])
    with open(os.path.join(path, "config.json"), encoding="utf-8") as stream:
        fields = json.load(stream)
    # transformers would leave the BiLSTM out without a word.
    assert fields["architectures"] == ["BertModel"] and fields["keras_bert"]["bilstm_size"] == 6
    bert = keras_bert.load(path)
    assert bert.head == HEADS[kind] and not bert.report.made_new and not bert.report.unused
    google = str(tmp_path / "google")
    convert_folder(bert.folder, "google", google, bert.tokenizer.vocabulary)
    assert keras_bert.load(google).head == HEADS[kind]

    function = serving_function(bert)
    texts = [b"the cat sat", b"the cat", b"sat the"]
    assert all(np.isfinite(v).all() for v in function(*columns_of(function, texts)).values() if v.dtype.kind == "f")
    batch = {name: value for name, value in pretraining_batch(bert.config).items() if name.startswith("input_")}
    shaped = {name: value[:, None] if kind == "choice" else value for name, value in batch.items()}
    expected = bert.model(shaped)
    names = [spec.name for spec in function.inputs["tokens"]]
    answers = function.answer("tokens", *(shaped[name] for name in names))
    compared = [name for name in ("logits", "start_logits", "end_logits") if name in expected]
    real = batch["input_mask"] == 1
    for name in compared:
        received, wanted = answers[name], expected[name].numpy()
        if kind in ("tagging", "answering"):
            received, wanted = received[:, : real.shape[1]][real], wanted[real]  # Serving pads to its own lengths.
        np.testing.assert_allclose(received, wanted, rtol=1e-4, atol=1e-5)
    assert compared


def test_a_keras_file_opens_without_custom_objects(tmp_path):
    model = BertForSequenceClassification(without_dropout(), 2, bilstm_size=4)
    random_weights(model)
    assert_a_keras_file_keeps(model, pretraining_batch(without_dropout()), tmp_path)


@pytest.mark.slow
def test_a_classifier_trains_with_it(tmp_path):
    """From the setting to a folder, which is then evaluated."""
    init, glue = write_tiny_bert(tmp_path / "init"), write_sst2(tmp_path / "glue")
    config = finetune_config(init, **{"data.folder": glue, "head.bilstm_size": 8, "training.epochs": 2.0})
    results = FinetuningRuns(config).one(str(tmp_path / "run"))
    bert = keras_bert.load(str(tmp_path / "run"))
    assert bert.head == dataclasses.replace(ClassificationConfig(bert.head.labels), bilstm_size=8)
    assert bert.encoder.pooler is None and results["splits"]["dev"]["accuracy"] > 0.6
    # Another run keeps the head, BiLSTM included.
    again = finetune_config(
        str(tmp_path / "run"), **{"data.folder": glue, "head.bilstm_size": 8, "training.epochs": 0.1}
    )
    said = listen()
    FinetuningRuns(again).one(str(tmp_path / "again"))
    assert not any("newly initialized" in line for line in said)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"head.bilstm_size": 0}, "head.bilstm_size: needs a value above 0"),
        ({"task": "ner", "features.kind": "last", "head.bilstm_size": 8}, "head.bilstm_size: needs no features.kind"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        FinetuneConfig.from_mapping({"task": settings.pop("task", "sst2")}, settings)


def test_a_task_whose_models_have_none_is_refused_before_its_files_are_looked_for():
    config = FinetuneConfig.from_mapping({"task": "pairs-contrastive"}, {"head.bilstm_size": 8})
    with pytest.raises(UserError, match="head.bilstm_size: needs a task whose models may have a BiLSTM"):
        open_problem(config, None)
