"""Google's folders: read as the original's code wrote them, written as it would read them."""

import dataclasses
import json
import os
import re

import numpy as np
import pytest
import tensorflow as tf
from served import write_served
from tiny import VOCABULARY, random_model

from keras_bert.checkpoints.google import write_google_folder
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import convert_folder, write_model_folder
from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import read_json
from keras_bert.inference.loading import load
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.tensor_names import model_variables
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

DATA = "bert_model.ckpt.data-00000-of-00001"


@pytest.fixture(scope="module")
def model():
    return random_model()


@pytest.fixture
def folder(tmp_path, model):
    path = str(tmp_path / "google")
    write_google_folder(path, model.config, tensors_of(model), VOCABULARY)
    return path


def tensors_of(model):
    return {name: variable.numpy() for name, variable in model_variables(model)}


def original_shapes(config):
    """Every variable of run_pretraining.py's graph with its shape, written down from modeling.py."""
    hidden, wide = config.hidden_size, config.intermediate_size
    shapes = {
        "bert/embeddings/word_embeddings": [config.vocab_size, hidden],
        "bert/embeddings/position_embeddings": [config.max_position_embeddings, hidden],
        "bert/embeddings/token_type_embeddings": [2, hidden],
        "bert/embeddings/LayerNorm/beta": [hidden],
        "bert/embeddings/LayerNorm/gamma": [hidden],
        "bert/pooler/dense/kernel": [hidden, hidden],
        "bert/pooler/dense/bias": [hidden],
        "cls/predictions/transform/dense/kernel": [hidden, hidden],
        "cls/predictions/transform/dense/bias": [hidden],
        "cls/predictions/transform/LayerNorm/beta": [hidden],
        "cls/predictions/transform/LayerNorm/gamma": [hidden],
        "cls/predictions/output_bias": [config.vocab_size],
        "cls/seq_relationship/output_weights": [2, hidden],
        "cls/seq_relationship/output_bias": [2],
    }
    for layer in range(config.num_hidden_layers):
        scope = f"bert/encoder/layer_{layer}"
        for dense, inner, outer in (
            ("attention/self/query", hidden, hidden),
            ("attention/self/key", hidden, hidden),
            ("attention/self/value", hidden, hidden),
            ("attention/output/dense", hidden, hidden),
            ("intermediate/dense", hidden, wide),
            ("output/dense", wide, hidden),
        ):
            shapes[f"{scope}/{dense}/kernel"] = [inner, outer]
            shapes[f"{scope}/{dense}/bias"] = [outer]
        for norm in ("attention/output/LayerNorm", "output/LayerNorm"):
            shapes[f"{scope}/{norm}/beta"] = shapes[f"{scope}/{norm}/gamma"] = [hidden]
    return shapes


def test_names_shapes_and_values_are_the_originals(folder, model):
    reader = tf.train.load_checkpoint(os.path.join(folder, "bert_model.ckpt"))
    assert dict(reader.get_variable_to_shape_map()) == original_shapes(model.config)
    assert set(reader.get_variable_to_dtype_map().values()) == {tf.float32}
    for name, kernel in (
        ("bert/encoder/layer_1/intermediate/dense/kernel", model.encoder.blocks[1].intermediate.kernel),
        ("bert/embeddings/LayerNorm/gamma", model.encoder.embeddings.layer_norm.gamma),
        ("cls/predictions/output_bias", model.mlm_head.bias),
    ):
        np.testing.assert_array_equal(reader.get_tensor(name), kernel)


def test_the_originals_formula_of_the_next_sentence_head(folder, model):
    """get_next_sentence_output multiplies by output_weights transposed; a wrong orientation gives other logits."""
    reader = tf.train.load_checkpoint(os.path.join(folder, "bert_model.ckpt"))
    pooled = np.random.default_rng(0).normal(size=(3, 16)).astype("float32")
    weights = reader.get_tensor("cls/seq_relationship/output_weights")
    expected = pooled @ weights.T + reader.get_tensor("cls/seq_relationship/output_bias")
    np.testing.assert_allclose(model.nsp_head(pooled), expected, rtol=1e-5, atol=1e-6)


def write_original(folder, tensors, name="bert_model.ckpt", extra=True):
    """A checkpoint by TF1's own Saver, with the optimizer's slots and the step."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for tensor_name, value in tensors.items():
            tf.compat.v1.get_variable(tensor_name, initializer=value)
            if extra:
                tf.compat.v1.get_variable(f"{tensor_name}/adam_m", initializer=np.zeros_like(value))
                tf.compat.v1.get_variable(f"{tensor_name}/adam_v", initializer=np.zeros_like(value))
        tf.compat.v1.get_variable("global_step", initializer=np.int64(7))
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver().save(session, os.path.join(folder, name), write_state=False)


def checkpoint_tensors(prefix):
    reader = tf.train.load_checkpoint(prefix)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def test_what_tf1_saved_is_read_without_its_optimizer(folder, model):
    prefix = os.path.join(folder, "bert_model.ckpt")
    tensors = checkpoint_tensors(prefix)
    for end in (".index", ".data-00000-of-00001"):
        os.unlink(prefix + end)
    write_original(folder, tensors)
    fresh = BertForPreTraining(model.config)
    report = open_model_folder(folder).load_into(fresh)
    assert not report.made_new and not report.unused
    for (name, received), (_, expected) in zip(model_variables(fresh), model_variables(model), strict=True):
        np.testing.assert_array_equal(received, expected, name.attribute)


def rename_checkpoint(folder, name):
    for end in (".index", ".data-00000-of-00001"):
        os.rename(os.path.join(folder, f"bert_model.ckpt{end}"), os.path.join(folder, f"{name}{end}"))


@pytest.mark.parametrize("name", ["model.ckpt-1000", "model"])
def test_the_only_checkpoint_is_taken_whatever_its_name(folder, model, name):
    rename_checkpoint(folder, name)
    fresh = BertForPreTraining(model.config)
    assert open_model_folder(folder).load_into(fresh).path.endswith(name)


def test_of_several_checkpoints_the_last_step_is_taken(folder, model):
    rename_checkpoint(folder, "model.ckpt-1000")
    write_original(folder, {"other": np.zeros(1)}, "model.ckpt-900")
    assert open_model_folder(folder).tensors.path.endswith("model.ckpt-1000")


def test_several_checkpoints_without_a_step_are_refused(folder):
    rename_checkpoint(folder, "first.ckpt")
    write_original(folder, {"other": np.zeros(1)}, "second.ckpt")
    with pytest.raises(UserError, match="needs one checkpoint. Received: first.ckpt, second.ckpt"):
        open_model_folder(folder)


def test_a_checkpoint_whose_data_is_missing_is_named(folder):
    os.unlink(os.path.join(folder, DATA))
    with pytest.raises(UserError, match=f"{DATA}: is missing"):
        load(folder)


@pytest.mark.parametrize("file, message", [("bert_model.ckpt.index", "is not a complete"), (DATA, "cannot be read")])
def test_a_truncated_checkpoint_is_named(folder, file, message):
    path = os.path.join(folder, file)
    with open(path, "rb") as stream:
        content = stream.read()
    with open(path, "wb") as stream:
        stream.write(content[: len(content) // 2])
    with pytest.raises(UserError, match=f"bert_model.ckpt.*: .*{message}") as refused:
        load(folder)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("missing", ["vocab.txt", "bert_model.ckpt.index"])
def test_a_missing_file_of_googles_is_named(folder, missing):
    os.unlink(os.path.join(folder, missing))
    with pytest.raises(UserError, match=f"needs {re.escape(missing)}"):
        open_model_folder(folder)


def test_an_activation_that_googles_code_lacks_is_refused(model, tmp_path):
    """It would read the folder's weights and then stop at the activation's name."""
    config = dataclasses.replace(model.config, hidden_act="silu")
    with pytest.raises(UserError, match="needs one of Google's hidden_act, gelu, .* Received: silu. Use --to huggingf"):
        write_google_folder(str(tmp_path / "google"), config, tensors_of(model), VOCABULARY)
    assert not (tmp_path / "google").exists()


def test_an_epsilon_that_googles_code_would_ignore_is_refused(model, tmp_path):
    """It would silently compute other states from the folder's weights."""
    config = dataclasses.replace(model.config, layer_norm_eps=1e-5)
    with pytest.raises(UserError, match="needs layer_norm_eps 1e-12, as in Google's code.* Received: 1e-05. Use"):
        write_google_folder(str(tmp_path / "google"), config, tensors_of(model), VOCABULARY)
    assert not (tmp_path / "google").exists()


def test_another_models_vocabulary_is_refused(folder):
    Vocabulary([*VOCABULARY.tokens, "more"]).to_file(os.path.join(folder, "vocab.txt"))
    with pytest.raises(UserError, match="vocab.txt: needs at most 60 rows.*Received: 61. Is it another"):
        load(folder)


def test_a_misshapen_tensor_is_named_as_google_names_it(folder):
    prefix = os.path.join(folder, "bert_model.ckpt")
    write_original(
        folder, {**checkpoint_tensors(prefix), "cls/seq_relationship/output_weights": np.zeros((16, 2), "f")}
    )
    with pytest.raises(UserError, match=r"output_weights needs shape \[2, 16\] by the config. Received: \[16, 2\]"):
        load(folder)


@pytest.mark.parametrize(
    "pieces, lower_case",
    [(["w", "##ing", "<S>", "ℝ", "[unused1]"], True), (["w", "##ing", "The"], False), (["##É", "é"], False)],
)
def test_casing_is_judged_from_the_vocabulary_and_said(folder, pieces, lower_case):
    Vocabulary([*SPECIAL_TOKENS, *pieces]).to_file(os.path.join(folder, "vocab.txt"))
    opened = open_model_folder(folder)
    assert opened.lower_case is lower_case
    assert ("uncased" in opened.notes[0]) is lower_case
    told = open_model_folder(folder, lower_case=not lower_case)
    assert told.lower_case is not lower_case and not told.notes


def test_round_trip_from_google_to_huggingface_and_back_bit_for_bit(folder, tmp_path):
    config_file = os.path.join(folder, "bert_config.json")
    with open(config_file, encoding="utf-8") as stream:
        config = {**json.load(stream), "directionality": "bidi", "pooler_type": "first_token_transform"}
    with open(config_file, "w", encoding="utf-8") as stream:
        json.dump(config, stream)
    there, back = str(tmp_path / "huggingface"), str(tmp_path / "back")
    assert convert_folder(open_model_folder(folder), "huggingface", there, VOCABULARY) == []
    assert convert_folder(open_model_folder(there), "google", back, VOCABULARY) == []
    for name in (DATA, "bert_model.ckpt.index", "vocab.txt"):
        with open(os.path.join(folder, name), "rb") as first, open(os.path.join(back, name), "rb") as second:
            assert first.read() == second.read(), name
    with open(os.path.join(back, "bert_config.json"), encoding="utf-8") as stream:
        assert json.load(stream) == config


def test_a_regression_keeps_what_a_cross_encoder_reads(tmp_path):
    """Without the activation, sentence-transformers' CrossEncoder would turn the scores into probabilities."""
    folder, there, back = (
        write_served(tmp_path / "model", "regression"),
        str(tmp_path / "google"),
        str(tmp_path / "back"),
    )
    vocabulary = open_model_folder(folder).vocabulary
    convert_folder(open_model_folder(folder), "google", there, vocabulary)
    convert_folder(open_model_folder(there), "huggingface", back, vocabulary)
    before, after = (read_json(f"{path}/config.json").get("sentence_transformers") for path in (folder, back))
    assert before == after == {"activation_fn": "torch.nn.modules.linear.Identity"}


def test_a_folder_of_both_kinds_is_opened_where_it_can_be_read(folder, model, tmp_path):
    """Some folders hold Google's checkpoint beside a config.json whose weights are of other frameworks alone."""
    both = str(tmp_path / "both")
    write_model_folder(both, model, VOCABULARY, lower_case=False)
    for name in os.listdir(folder):
        os.link(os.path.join(folder, name), os.path.join(both, name)) if name != "vocab.txt" else None
    assert open_model_folder(both).kind == "huggingface"
    os.unlink(os.path.join(both, "model.safetensors"))
    assert open_model_folder(both).kind == "google"
