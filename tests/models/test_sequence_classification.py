"""The classifier: its head and its names in files."""

import json
import os

import keras
import numpy as np
import pytest
from goldens import ENCODER_INPUTS
from tiny import VOCABULARY, pretraining_batch, random_weights, without_dropout

from keras_bert.checkpoints.google import write_google_folder
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import convert_folder, write_model_folder
from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION, SINGLE_LABEL
from keras_bert.inference.loading import load
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.tensor_names import model_variables
from keras_bert.tasks.classification.head import CLASSIFIER, ClassificationConfig
from keras_bert.tasks.classification.network import BertForSequenceClassification

KINDS = [
    ClassificationConfig(("against", "neutral", "for")),
    ClassificationConfig(("sport", "politics"), MULTI_LABEL),
    ClassificationConfig(("similarity",), REGRESSION),
]


def random_model(num_labels, seed=0):
    model = BertForSequenceClassification(without_dropout(), num_labels)
    random_weights(model, seed)
    return model


def batch_of(model):
    batch = pretraining_batch(model.config)
    return {name: batch[name] for name in ENCODER_INPUTS.values()}


def tensors_of(model):
    return {name: variable.numpy() for name, variable in model_variables(model)}


def config_of(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as stream:
        return json.load(stream)


@pytest.fixture(scope="module")
def model():
    return random_model(3)


@pytest.fixture
def folder(tmp_path, model):
    path = str(tmp_path / "folder")
    write_model_folder(path, model, VOCABULARY, lower_case=True, head=KINDS[0])
    return path


def test_logits_are_of_the_pooled_state(model):
    batch = batch_of(model)
    pooled = model.encoder(batch)["pooled_output"]
    dense = model.classifier.dense
    np.testing.assert_allclose(model(batch)["logits"], pooled @ dense.kernel + dense.bias, rtol=1e-5, atol=1e-6)


def test_pooled_state_is_dropped_in_training_alone():
    """The encoder's own rates are 0 here, so what differs comes from the head."""
    model = random_model(3)
    model.classifier.dropout.rate = 0.5
    batch = batch_of(model)
    still = model(batch)["logits"].numpy()
    np.testing.assert_array_equal(still, model(batch)["logits"])
    assert np.abs(still - model(batch, training=True)["logits"]).max() > 1e-3


def test_head_takes_the_configs_rate_and_range():
    config = without_dropout(initializer_range=1e-4)
    config.hidden_dropout_prob = 0.25
    head = BertForSequenceClassification(config, 2).classifier
    assert head.dropout.rate == 0.25
    assert 0 < np.abs(head.dense.kernel).max() < 2.1e-4 and not np.any(head.dense.bias)


def test_mixed_precision_gives_float32_logits():
    model = BertForSequenceClassification(without_dropout(), 2, dtype="mixed_bfloat16")
    assert model(batch_of(model))["logits"].dtype == "float32"


def test_serialised_and_back(model, tmp_path):
    path = str(tmp_path / "model.keras")
    model.save(path)
    again = keras.models.load_model(path)
    np.testing.assert_array_equal(again(batch_of(model))["logits"], model(batch_of(model))["logits"])


@pytest.mark.parametrize("classification", KINDS, ids=lambda kind: kind.problem_type)
def test_folder_reads_back_with_its_labels(tmp_path, classification):
    model = random_model(classification.num_labels)
    write_model_folder(str(tmp_path / "f"), model, VOCABULARY, lower_case=True, head=classification)
    loaded = load(str(tmp_path / "f"))
    assert loaded.head == classification
    assert not loaded.report.made_new and not loaded.report.unused
    np.testing.assert_array_equal(loaded.model(batch_of(model))["logits"], model(batch_of(model))["logits"])


def test_config_names_class_and_labels(folder):
    config = config_of(folder)
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert config["id2label"] == {"0": "against", "1": "neutral", "2": "for"}
    assert config["label2id"] == {"against": 0, "neutral": 1, "for": 2}
    assert config["num_labels"] == 3 and config["problem_type"] == SINGLE_LABEL


def test_labels_of_another_model_are_refused_on_writing(tmp_path, model):
    with pytest.raises(ValueError, match="needs 3 labels"):
        write_model_folder(str(tmp_path / "f"), model, VOCABULARY, True, head=KINDS[1])


def test_a_pretrained_folder_gives_a_new_head_and_says_so(tmp_path, model):
    pretrained = BertForPreTraining(without_dropout())
    random_weights(pretrained)
    write_model_folder(str(tmp_path / "f"), pretrained, VOCABULARY, lower_case=True)
    fresh = BertForSequenceClassification(without_dropout(), 3)
    before = fresh.classifier.dense.kernel.numpy()
    report = open_model_folder(str(tmp_path / "f")).load_into(fresh)
    assert report.made_new == ["classifier.weight", "classifier.bias"] and not report.replaced
    np.testing.assert_array_equal(fresh.classifier.dense.kernel, before)
    np.testing.assert_array_equal(fresh.encoder.pooler.dense.kernel, pretrained.encoder.pooler.dense.kernel)


@pytest.mark.parametrize("num_labels", [2, 3])
def test_another_tasks_head_is_made_new_when_asked_and_said(folder, model, num_labels):
    """Also where the number of labels is the same and the tensors would fit."""
    fresh = BertForSequenceClassification(without_dropout(), num_labels)
    before = fresh.classifier.dense.kernel.numpy()
    report = open_model_folder(folder).load_into(fresh, new_parts=(CLASSIFIER,))
    assert report.replaced == ["classifier.weight", "classifier.bias"]
    assert not report.made_new and not report.unused
    assert [line for line in report.lines() if "but newly initialized: classifier.weight, classifier.bias." in line]
    np.testing.assert_array_equal(fresh.classifier.dense.kernel, before)
    np.testing.assert_array_equal(fresh.encoder.pooler.dense.kernel, model.encoder.pooler.dense.kernel)


def test_another_number_of_labels_is_refused_unasked(folder):
    with pytest.raises(Exception, match=r"classifier.weight needs shape \[2, 16\].*Received: \[3, 16\]"):
        open_model_folder(folder).load_into(BertForSequenceClassification(without_dropout(), 2))


def test_an_unknown_kind_of_classifier_is_not_taken_for_one_of_sequences(folder):
    path = os.path.join(folder, "config.json")
    config = {**config_of(folder), "architectures": ["BertForSomethingElse"]}
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(config, stream)
    loaded = load(folder)
    assert loaded.head is None and loaded.model is loaded.encoder
    assert "classifier.weight" in loaded.report.unused


def test_labels_survive_googles_format(folder, tmp_path, model):
    google, back = str(tmp_path / "google"), str(tmp_path / "back")
    convert_folder(open_model_folder(folder), "google", google, VOCABULARY)
    convert_folder(open_model_folder(google), "huggingface", back, VOCABULARY)
    for path in (google, back):
        loaded = load(path)
        assert loaded.head == KINDS[0]
        np.testing.assert_array_equal(loaded.model(batch_of(model))["logits"], model(batch_of(model))["logits"])
    assert config_of(back)["architectures"] == ["BertForSequenceClassification"]


@pytest.fixture
def of_google(tmp_path, model):
    """As run_classifier.py leaves it: no names of labels."""
    path = str(tmp_path / "run_classifier")
    write_google_folder(path, model.config, tensors_of(model), VOCABULARY)
    return path


def test_googles_names_are_run_classifiers(of_google, model):
    import tensorflow as tf

    reader = tf.train.load_checkpoint(os.path.join(of_google, "bert_model.ckpt"))
    weights, bias = reader.get_tensor("output_weights"), reader.get_tensor("output_bias")
    assert weights.shape == (3, 16)
    pooled = np.random.default_rng(0).normal(size=(4, 16)).astype("float32")
    np.testing.assert_allclose(model.classifier(pooled), pooled @ weights.T + bias, rtol=1e-5, atol=1e-6)


def test_labels_without_names_are_numbered(of_google, tmp_path):
    assert load(of_google).head == ClassificationConfig(("LABEL_0", "LABEL_1", "LABEL_2"))
    convert_folder(open_model_folder(of_google), "huggingface", str(tmp_path / "hf"), VOCABULARY)
    # Without it transformers would take the head for one of two labels.
    assert config_of(str(tmp_path / "hf"))["num_labels"] == 3
