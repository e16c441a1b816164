"""The heads of spans, tokens and choices: what they compute, and their folders."""

import json
import os

import keras
import numpy as np
import pytest
from goldens import ENCODER_INPUTS
from tiny import VOCABULARY, pretraining_batch, random_model, random_weights, without_dropout

from keras_bert.checkpoints.google import write_google_folder
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import convert_folder, write_model_folder
from keras_bert.core.errors import UserError
from keras_bert.inference.loading import load
from keras_bert.models.tensor_names import model_variables
from keras_bert.tasks.kind import kind_of_head
from keras_bert.tasks.multiple_choice.task import MultipleChoiceConfig
from keras_bert.tasks.question_answering.task import SpanExtractionConfig
from keras_bert.tasks.tagging.head import FeatureTaggingConfig, TokenClassificationConfig

TAGS = TokenClassificationConfig(("O", "B-PER", "I-PER"))
HEADS = [SpanExtractionConfig(), TAGS, MultipleChoiceConfig()]
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


@pytest.mark.parametrize("head", [TAGS, MultipleChoiceConfig()], ids=str)
def test_states_are_dropped_in_training_alone(head):
    """The encoder's own rates are 0 here, so what differs comes from the head."""
    model, batch = model_of(head), batch_of(head)
    model.classifier.dropout.rate = 0.5
    np.testing.assert_array_equal(model(batch)["logits"], model(batch)["logits"])
    assert np.abs(model(batch)["logits"] - model(batch, training=True)["logits"]).max() > 1e-3


@each_head
def test_no_variable_is_without_a_gradient(head):
    """Of spans and tokens a pooler would be trained by nothing, and the optimiser needs every gradient."""
    import tensorflow as tf

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


@each_head
def test_a_head_survives_googles_format(head, tmp_path):
    model, batch = model_of(head), batch_of(head)
    folder, google, back = write(tmp_path / "f", model, head), str(tmp_path / "google"), str(tmp_path / "back")
    convert_folder(open_model_folder(folder), "google", google, VOCABULARY)
    convert_folder(open_model_folder(google), "huggingface", back, VOCABULARY)
    for path in (google, back):
        loaded = load(path, lower_case=True)
        assert loaded.head == head
        assert_equal_outputs(outputs_of(loaded.model, batch), outputs_of(model, batch))
    assert config_of(back)["architectures"] == [head.architecture]


def test_a_feature_tagger_and_its_task_survive_googles_format(tmp_path):
    head = FeatureTaggingConfig(("O", "B-PER", "I-PER"), "weighted_all", lstm_size=4)
    model, batch, task = model_of(head), batch_of(head), {"task": "ner", "max_length": 16}
    write_model_folder(str(tmp_path / "f"), model, VOCABULARY, lower_case=True, head=head, task=task)
    folder, google, back = str(tmp_path / "f"), str(tmp_path / "google"), str(tmp_path / "back")
    convert_folder(open_model_folder(folder), "google", google, VOCABULARY)
    convert_folder(open_model_folder(google), "huggingface", back, VOCABULARY)
    for path in (google, back):
        loaded = load(path, lower_case=True)
        assert loaded.head == head
        assert open_model_folder(path, lower_case=True).task.items() >= task.items()
        assert_equal_outputs(outputs_of(loaded.model, batch), outputs_of(model, batch))


def test_run_squads_checkpoint_is_a_reader_of_spans(tmp_path):
    """Its config names no class, its tensors are called cls/squad/output_weights and output_bias."""
    import tensorflow as tf

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
    assert report.made_new == ["classifier.weight", "classifier.bias"]
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
    config = {**config_of(folder), "architectures": [named]}
    config["id2label"] = {"0": "a"}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as stream:
        json.dump(config, stream)
    if message is None:
        assert load(folder).head == TokenClassificationConfig(("a",))
    else:
        with pytest.raises(UserError, match=f"config.json: {message}"):
            load(folder)
