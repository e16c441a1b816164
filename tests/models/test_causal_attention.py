"""Left-to-right attention: equal to transformers' decoder, blind to what comes later, and named in config.json."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from goldens import Golden, read_tensors, write_again
from tiny import VOCABULARY, pretraining_batch, random_weights, without_dropout, write_random

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import convert_folder
from keras_bert.core.errors import UserError
from keras_bert.export.serving_function import serving_function
from keras_bert.export.signature import TOKENS
from keras_bert.inference.loading import load
from keras_bert.layers.dropout import dropout_key
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.network import BertForSequenceClassification

HEAD = ClassificationConfig(("no", "yes"))


@pytest.fixture(scope="module")
def encoder():
    model = BertEncoder(without_dropout(attention="causal"))
    random_weights(model)
    return model


@pytest.fixture(scope="module")
def theirs(goldens):
    return Golden(goldens, "causal")


@pytest.mark.parity
def test_logits_and_hidden_states_are_those_of_a_decoder(theirs):
    model, real = load(theirs.path).model, theirs.real
    logits = model(theirs.encoder_batch)["mlm_logits"].numpy()
    np.testing.assert_allclose(logits[real], theirs.outputs["logits"][real], rtol=1e-5, atol=1e-5)
    states = model.encoder(theirs.batch)["hidden_states"]
    for state, expected in zip(states, theirs.outputs["hidden_states"], strict=True):
        np.testing.assert_allclose(state.numpy()[real], expected[real], rtol=1e-5, atol=1e-5)


@pytest.mark.parity
def test_what_is_written_names_the_decoder_again(theirs, tmp_path):
    """Without is_decoder, transformers would let every token see the whole row."""
    write_again(tmp_path / "model", load(theirs.path))
    fields = json.loads((tmp_path / "model" / "config.json").read_text("utf-8"))
    assert fields["is_decoder"] is True and fields["architectures"] == ["BertLMHeadModel"] and "attention" not in fields
    received = read_tensors(tmp_path / "model")
    for name, value in read_tensors(theirs.path).items():
        np.testing.assert_array_equal(received[name], value, err_msg=name)
    assert open_model_folder(tmp_path / "model").config == BertConfig.from_file(f"{theirs.path}/config.json")


def test_a_token_changes_nothing_before_it(encoder):
    batch = pretraining_batch(encoder.config)
    before = encoder(batch)
    for place in range(12):
        ids = batch["input_word_ids"].copy()
        ids[:, place] = (ids[:, place] + 1) % 60
        after = encoder({**batch, "input_word_ids": ids})
        for old, new in zip(before["hidden_states"], after["hidden_states"]):
            np.testing.assert_array_equal(new[:, :place], old[:, :place])
        real = batch["input_mask"][:, place] == 1
        assert (
            not np.isclose(after["sequence_output"][:, place], before["sequence_output"][:, place]).all(-1)[real].any()
        )


def test_a_call_may_ask_for_the_other_attention(encoder):
    """A run trains left to right in one phase and on masks in another, with the same weights."""
    other = BertEncoder(without_dropout())
    random_weights(other)
    batch = pretraining_batch(encoder.config)
    for asked, model, causal in ((other, encoder, True), (encoder, other, False)):
        received, expected = asked(batch, causal=causal), model(batch)
        for name in ("sequence_output", "pooled_output"):
            np.testing.assert_array_equal(received[name], expected[name])


def test_the_last_token_is_pooled(encoder):
    """[CLS] has seen no other token. Padding does not count."""
    batch = pretraining_batch(encoder.config)
    outputs, lengths = encoder(batch), batch["input_mask"].sum(axis=1)
    last = outputs["sequence_output"].numpy()[np.arange(len(lengths)), lengths - 1]
    np.testing.assert_allclose(outputs["pooled_output"], encoder.pooler.dense(last), rtol=1e-5, atol=1e-6)


def test_half_precision_masks_too():
    """The biases of padding and of later tokens must not add up to more than float16 holds."""
    model, batch = (
        BertEncoder(without_dropout(attention="causal"), dtype="mixed_float16"),
        pretraining_batch(without_dropout()),
    )
    random_weights(model)
    attentions = model(batch, return_attentions=True)["attentions"]
    for probabilities in attentions:
        assert np.isfinite(probabilities).all() and not np.triu(probabilities, 1).any()


def test_recomputed_blocks_have_the_same_gradient(encoder):
    batch = pretraining_batch(encoder.config)

    def gradient(recompute_every):
        encoder.recompute_every = recompute_every
        with tf.GradientTape() as tape, dropout_key(tf.constant([1, 2], tf.uint32)):
            loss = tf.reduce_sum(encoder(batch, training=True)["sequence_output"][:, 3] ** 3)
        return tf.convert_to_tensor(tape.gradient(loss, encoder.embeddings.position_embeddings.value))

    expected, received = gradient(0), gradient(1)
    encoder.recompute_every = 0
    assert not expected.numpy()[4:].any() and expected.numpy()[:4].all()
    np.testing.assert_allclose(received, expected, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """(a causal classifier, its folder)."""
    model, folder = BertForSequenceClassification(without_dropout(attention="causal"), 2), tmp_path_factory.mktemp("c")
    write_random(folder / "model", model, head=HEAD)
    return model, folder / "model"


def test_a_classifier_does_not_pass_for_one_of_transformers(classifier):
    """transformers pools [CLS] even here: its answers would be the same for every text."""
    model, folder = classifier
    fields = json.loads((folder / "config.json").read_text("utf-8"))
    assert fields["architectures"] == ["BertModel"] and fields["is_decoder"] is True
    assert "from transformers" not in (folder / "README.md").read_text("utf-8")
    bert, batch = load(folder), pretraining_batch(model.config)
    assert bert.head == HEAD
    np.testing.assert_array_equal(bert.model(batch)["logits"], model(batch)["logits"])
    answers = bert.predict(["w1 w2 w3", "w1 w2 w4"])
    assert answers[0].probabilities != answers[1].probabilities
    served = serving_function(bert)(["w1 w2 w3", "w1 w2 w4"])
    np.testing.assert_allclose(
        served["probabilities"], [list(answer.probabilities.values()) for answer in answers], rtol=1e-4, atol=1e-5
    )


def test_a_classifier_of_transformers_reads_cls(classifier, tmp_path):
    """Only a folder that says it is ours reads the last token; answers used to be off by more than 1."""
    model, folder = classifier
    path = tmp_path / "theirs"
    shutil.copytree(folder, path)
    fields = json.loads((path / "config.json").read_text("utf-8"))
    del fields["pools_cls"], fields["keras_bert"]
    (path / "config.json").write_text(json.dumps({**fields, "architectures": ["BertForSequenceClassification"]}))
    bert, batch = load(path), pretraining_batch(model.config)
    states = model.encoder(batch)["sequence_output"]
    expected = model.classifier(model.encoder.pooler(states))
    np.testing.assert_allclose(bert.model(batch)["logits"], expected, rtol=1e-5, atol=1e-5)
    served = serving_function(bert).answer("tokens", *(batch[spec.name] for spec in TOKENS))
    np.testing.assert_allclose(served["logits"], expected, rtol=1e-5, atol=1e-5)
    write_again(tmp_path / "again", bert)
    again = load(tmp_path / "again")
    assert again.folder.other_fields["architectures"] == ["BertForSequenceClassification"] and again.head == HEAD
    np.testing.assert_array_equal(again.model(batch)["logits"], bert.model(batch)["logits"])
    assert (
        bert.config.for_training() == model.config
    )  # Fine-tuning it would otherwise learn from [CLS], which is blind.


def test_a_pooler_of_transformers_reads_cls():
    """Its files have no `pools_cls`, and its BertLMHeadModel has no pooler."""
    of_lm = {"is_decoder": True, "architectures": ["BertLMHeadModel"]}
    assert BertConfig.from_fields(of_lm, "config.json").pools_last
    assert not BertConfig.from_fields({"is_decoder": True, "architectures": ["BertModel"]}, "config.json").pools_last


def test_what_makes_no_sense_is_refused_with_the_remedy(classifier, theirs, tmp_path):
    bert, folder = load(theirs.path), open_model_folder(classifier[1])
    with pytest.raises(UserError, match="Use mean"):
        bert.encode(["a cat"], pooling="cls")
    with pytest.raises(UserError, match="run.py generate"):
        bert.fill(["The [MASK]."])
    with pytest.raises(UserError, match="Google's code has no causal attention"):
        convert_folder(folder, "google", tmp_path / "google", VOCABULARY)
