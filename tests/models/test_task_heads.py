"""The heads of texts, spans, tokens and choices: what they compute, and their folders."""

import json
import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from goldens import ENCODER_INPUTS
from tiny import VOCABULARY, pretraining_batch, random_model, random_weights, without_dropout

from keras_bert.checkpoints.google import write_google_folder
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import convert_folder, write_model_folder
from keras_bert.core.errors import UserError
from keras_bert.inference.loading import load
from keras_bert.models.tensor_names import model_variables
from keras_bert.tasks.classification.head import CLASSIFIER, ClassificationConfig
from keras_bert.tasks.classification.network import BertForSequenceClassification
from keras_bert.tasks.kind import kind_of_head
from keras_bert.tasks.multiple_choice.task import MultipleChoiceConfig
from keras_bert.tasks.question_answering.task import SpanExtractionConfig
from keras_bert.tasks.tagging.head import FeatureTaggingConfig, TokenClassificationConfig

TAGS = TokenClassificationConfig(("O", "B-PER", "I-PER"))
CLASSES = ClassificationConfig(("against", "neutral", "for"))
HEADS = [SpanExtractionConfig(), TAGS, MultipleChoiceConfig(), CLASSES]
each_head = pytest.mark.parametrize("head", HEADS, ids=str)


def model_of(head, **settings):
    model = kind_of_head(head).make_model(without_dropout(), head, **settings)
    random_weights(model)
    return model


def batch_of(head):
    batch = pretraining_batch(without_dropout(), batch=6)
    batch = {name: batch[name] for name in ENCODER_INPUTS.values()}
    if isinstance(head, MultipleChoiceConfig):
        return {name: value.reshape(2, 3, -1) for name, value in batch.items()}
    return batch


def outputs_of(model, batch):
    return {name: value.numpy() for name, value in model(batch).items()}


def assert_equal_outputs(received, expected, **tolerance):
    assert received.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(received[name], values, err_msg=name, **tolerance)


def write(path, model, head):
    write_model_folder(str(path), model, VOCABULARY, lower_case=True, head=head)
    return str(path)


def config_of(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as stream:
        return json.load(stream)


def rewrite_config(folder, **changes):
    config = {**config_of(folder), **changes}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as stream:
        json.dump(config, stream)


def test_tokens_and_spans_are_of_each_tokens_last_state():
    for head, attribute in ((HEADS[0], "qa_outputs"), (TAGS, "classifier")):
        model, batch = model_of(head), batch_of(head)
        dense = getattr(model, attribute).dense
        expected = model.encoder(batch)["sequence_output"] @ dense.kernel + dense.bias
        outputs = outputs_of(model, batch)
        if "logits" not in outputs:
            outputs = {"logits": np.stack([outputs["start_logits"], outputs["end_logits"]], axis=-1)}
        np.testing.assert_allclose(outputs["logits"], expected, rtol=1e-5, atol=1e-6)


def test_each_choice_is_scored_by_itself():
    model, batch = model_of(MultipleChoiceConfig()), batch_of(MultipleChoiceConfig())
    logits = model(batch)["logits"].numpy()
    for row in range(2):
        for choice in range(3):
            alone = {name: value[row : row + 1, choice : choice + 1] for name, value in batch.items()}
            np.testing.assert_allclose(model(alone)["logits"], [[logits[row, choice]]], rtol=1e-5, atol=1e-6)


def test_an_absent_choice_cannot_be_chosen_and_changes_nothing():
    model, batch = model_of(MultipleChoiceConfig()), batch_of(MultipleChoiceConfig())
    whole = model(batch)["logits"].numpy()
    for name in batch:
        batch[name] = batch[name].copy()
        batch[name][1, 2] = 0
    logits = model(batch)["logits"].numpy()
    assert logits[1, 2] == -np.inf
    np.testing.assert_allclose(np.delete(logits, 5), np.delete(whole, 5), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("head", [TAGS, MultipleChoiceConfig(), CLASSES], ids=str)
def test_states_are_dropped_in_training_alone(head):
    """The encoder's own rates are 0 here, so what differs comes from the head."""
    model, batch = model_of(head), batch_of(head)
    model.classifier.dropout.rate = 0.5
    np.testing.assert_array_equal(model(batch)["logits"], model(batch)["logits"])
    assert np.abs(model(batch)["logits"] - model(batch, training=True)["logits"]).max() > 1e-3


@each_head
def test_no_variable_is_without_a_gradient(head):
    """Tasks on spans and tokens would never train a pooler, and the optimiser needs every gradient."""
    model, batch = model_of(head), batch_of(head)
    with tf.GradientTape() as tape:
        loss = sum(tf.reduce_sum(value**2) for value in model(batch).values())
    assert all(gradient is not None for gradient in tape.gradient(loss, model.trainable_variables))


@each_head
def test_mixed_precision_gives_float32(head):
    outputs = model_of(head, dtype="mixed_bfloat16")(batch_of(head))
    assert all(value.dtype == "float32" for value in outputs.values())


@each_head
def test_serialised_and_back(head, tmp_path):
    model, batch = model_of(head), batch_of(head)
    model.save(str(tmp_path / "model.keras"))
    again = keras.models.load_model(str(tmp_path / "model.keras"))
    assert_equal_outputs(outputs_of(again, batch), outputs_of(model, batch))


@each_head
def test_a_folder_reads_back_as_what_it_was(head, tmp_path):
    model, batch = model_of(head), batch_of(head)
    folder = write(tmp_path / "f", model, head)
    loaded = load(folder)
    assert loaded.head == head and type(loaded.model) is type(model)
    assert config_of(folder)["architectures"] == [head.architecture]
    assert not loaded.report.made_new and not loaded.report.unused
    assert_equal_outputs(outputs_of(loaded.model, batch), outputs_of(model, batch))


def there_and_back(place):
    """Converts place/f to Google's format, and that back to Hugging Face's; returns both folders."""
    google, back = str(place / "google"), str(place / "back")
    convert_folder(open_model_folder(str(place / "f")), "google", google, VOCABULARY)
    convert_folder(open_model_folder(google), "huggingface", back, VOCABULARY)
    return google, back


@each_head
def test_a_head_survives_googles_format(head, tmp_path):
    model, batch = model_of(head), batch_of(head)
    write(tmp_path / "f", model, head)
    for path in there_and_back(tmp_path):
        loaded = load(path, lower_case=True)
        assert loaded.head == head
        assert_equal_outputs(outputs_of(loaded.model, batch), outputs_of(model, batch))
    assert config_of(path)["architectures"] == [head.architecture]


def test_a_feature_tagger_and_its_task_survive_googles_format(tmp_path):
    head = FeatureTaggingConfig(("O", "B-PER", "I-PER"), "weighted_all", lstm_size=4)
    model, batch, task = model_of(head), batch_of(head), {"task": "ner", "max_length": 16}
    write_model_folder(str(tmp_path / "f"), model, VOCABULARY, lower_case=True, head=head, task=task)
    for path in there_and_back(tmp_path):
        loaded = load(path, lower_case=True)
        assert loaded.head == head
        assert open_model_folder(path, lower_case=True).task.items() >= task.items()
        assert_equal_outputs(outputs_of(loaded.model, batch), outputs_of(model, batch))


def test_run_squads_checkpoint_is_a_reader_of_spans(tmp_path):
    """Its config names no class, its tensors are called cls/squad/output_weights and output_bias."""
    model = model_of(HEADS[0])
    tensors = {name: variable.numpy() for name, variable in model_variables(model)}
    write_google_folder(str(tmp_path / "g"), model.config, tensors, VOCABULARY)
    reader = tf.train.load_checkpoint(str(tmp_path / "g" / "bert_model.ckpt"))
    weights, bias = reader.get_tensor("cls/squad/output_weights"), reader.get_tensor("cls/squad/output_bias")
    assert weights.shape == (2, 16) and bias.shape == (2,)
    loaded = load(str(tmp_path / "g"), lower_case=True)
    assert loaded.head == SpanExtractionConfig()
    assert_equal_outputs(outputs_of(loaded.model, batch_of(None)), outputs_of(model, batch_of(None)))


def test_a_pretrained_encoder_goes_in_and_the_head_is_made_new(tmp_path):
    pretrained = random_model()
    write_model_folder(str(tmp_path / "f"), pretrained, VOCABULARY, lower_case=True)
    tagger = kind_of_head(TAGS).make_model(pretrained.config, TAGS)
    report = open_model_folder(str(tmp_path / "f")).load_into(tagger)
    assert report.made_new == ["classifier.weight", "classifier.bias"] and not report.replaced
    assert "bert.pooler.dense.weight" in report.unused
    batch = batch_of(TAGS)
    np.testing.assert_array_equal(
        tagger.encoder(batch)["sequence_output"], pretrained.encoder(batch)["sequence_output"]
    )


def test_another_models_head_is_refused_on_writing(tmp_path):
    with pytest.raises(ValueError, match="needs the config of a BertForQuestionAnswering. .* BertForTokenClass"):
        write(tmp_path / "f", model_of(HEADS[0]), TAGS)
    with pytest.raises(ValueError, match="needs 3 labels"):
        write(tmp_path / "f", model_of(TAGS), TokenClassificationConfig(("O",)))


@pytest.mark.parametrize(
    "head, named, message",
    [
        (TAGS, "BertForMultipleChoice", "needs a head with 1 output .* Received: 3"),
        (MultipleChoiceConfig(), "BertForTokenClassification", None),
        (TAGS, "BertForTokenClassification", "id2label needs a name for each of 0 to 2"),
    ],
)
def test_a_config_that_does_not_fit_its_tensors_is_named(head, named, message, tmp_path):
    folder = write(tmp_path / "f", model_of(head), head)
    rewrite_config(folder, architectures=[named], id2label={"0": "a"})
    if message is None:
        assert load(folder).head == TokenClassificationConfig(("a",))
    else:
        with pytest.raises(UserError, match=f"config.json: {message}"):
            load(folder)


@pytest.fixture(scope="module")
def classifier():
    return model_of(CLASSES)


@pytest.fixture
def folder(tmp_path, classifier):
    return write(tmp_path / "folder", classifier, CLASSES)


def test_head_takes_the_configs_rate_and_range():
    config = without_dropout(initializer_range=1e-4)
    config.hidden_dropout_prob = 0.25
    head = BertForSequenceClassification(config, 2).classifier
    assert head.dropout.rate == 0.25
    assert 0 < np.abs(head.dense.kernel).max() < 2.1e-4 and not np.any(head.dense.bias)


@pytest.mark.parametrize("num_labels", [2, 3])
def test_another_tasks_head_is_made_new_when_asked_and_said(folder, classifier, num_labels):
    """Also where the number of labels is the same and the tensors would fit."""
    fresh = BertForSequenceClassification(without_dropout(), num_labels)
    before = fresh.classifier.dense.kernel.numpy()
    report = open_model_folder(folder).load_into(fresh, new_parts=(CLASSIFIER,))
    assert report.replaced == ["classifier.weight", "classifier.bias"]
    assert not report.made_new and not report.unused
    assert [line for line in report.lines() if "but newly initialized: classifier.weight, classifier.bias." in line]
    np.testing.assert_array_equal(fresh.classifier.dense.kernel, before)
    np.testing.assert_array_equal(fresh.encoder.pooler.dense.kernel, classifier.encoder.pooler.dense.kernel)


def test_another_number_of_labels_is_refused_unasked(folder):
    with pytest.raises(Exception, match=r"classifier.weight needs shape \[2, 16\].*Received: \[3, 16\]"):
        open_model_folder(folder).load_into(BertForSequenceClassification(without_dropout(), 2))


def test_an_unknown_kind_of_classifier_is_not_taken_for_one_of_sequences(folder):
    rewrite_config(folder, architectures=["BertForSomethingElse"])
    loaded = load(folder)
    assert loaded.head is None and loaded.model is loaded.encoder
    assert "classifier.weight" in loaded.report.unused


@pytest.fixture
def of_google(tmp_path, classifier):
    """As run_classifier.py leaves it: no names of labels."""
    path = str(tmp_path / "run_classifier")
    tensors = {name: variable.numpy() for name, variable in model_variables(classifier)}
    write_google_folder(path, classifier.config, tensors, VOCABULARY)
    return path


def test_googles_names_are_run_classifiers(of_google, classifier):
    reader = tf.train.load_checkpoint(os.path.join(of_google, "bert_model.ckpt"))
    weights, bias = reader.get_tensor("output_weights"), reader.get_tensor("output_bias")
    assert weights.shape == (3, 16)
    pooled = np.random.default_rng(0).normal(size=(4, 16)).astype("float32")
    np.testing.assert_allclose(classifier.classifier(pooled), pooled @ weights.T + bias, rtol=1e-5, atol=1e-6)


def test_labels_without_names_are_numbered(of_google, tmp_path):
    assert load(of_google).head == ClassificationConfig(("LABEL_0", "LABEL_1", "LABEL_2"))
    convert_folder(open_model_folder(of_google), "huggingface", str(tmp_path / "hf"), VOCABULARY)
    # Without it transformers would take the head for one of two labels.
    assert config_of(str(tmp_path / "hf"))["num_labels"] == 3
