"""How a folder's files for sentence-transformers say that its vectors are made: followed, refused and kept."""

import json
import os

import numpy as np
import pytest
from served import write_served

import keras_bert
from keras_bert.checkpoints.sentence_transformers import vector_files
from keras_bert.checkpoints.writing import convert_folder
from keras_bert.core.errors import UserError

TEXTS = ["the cat", "", "cat sat the cat . sat", "the " * 50]
FILES = vector_files(16, 12)
POOLING = "1_Pooling/config.json"


def at_length_one(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def write_files(folder, files):
    for name, content in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as stream:
            json.dump(content, stream)


def modules(*names):
    """modules.json of these modules, of the class names of version 6."""
    return [
        {"idx": index, "name": str(index), "path": f"{index}_{name}" if index else "", "type": f"some.{name}"}
        for index, name in enumerate(names)
    ]


@pytest.fixture
def folder(tmp_path):
    return write_served(tmp_path / "model", "encoder")


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode": "cls", "embedding_dimension": 16}, "cls"),
        ({"pooling_mode": ["max"]}, "max"),
        ({}, "mean"),
    ],
)
def test_a_declared_pooling_is_the_default(folder, config, pooling):
    """By the fields of old and new versions. Vectors by another pooling are useless, yet look like any others."""
    write_files(folder, {**FILES, POOLING: config, "modules.json": modules("Transformer", "Pooling")})
    bert = keras_bert.load(folder)
    cut = bert.embedder(max_length=12)
    np.testing.assert_array_equal(bert.encode(TEXTS), bert.embedder(pooling, 12)(TEXTS).vectors)
    assert cut(TEXTS).is_cut.tolist() == bert.embedder()(TEXTS).is_cut.tolist() == [False, False, False, True]


def test_vectors_are_normalized_if_the_folder_says_so(folder):
    """An explicitly named pooling does not normalize."""
    write_files(folder, FILES)
    bert = keras_bert.load(folder)
    by_hand = bert.encode(TEXTS, "mean")
    assert np.abs(np.linalg.norm(by_hand, axis=1) - 1).min() > 1e-3
    np.testing.assert_allclose(bert.encode(TEXTS), at_length_one(by_hand), atol=1e-6)


def test_a_folder_that_says_nothing_has_means(folder):
    bert = keras_bert.load(folder)
    np.testing.assert_array_equal(bert.encode(TEXTS), bert.encode(TEXTS, "mean"))
    write_files(folder, {"modules.json": modules("Transformer")})  # A CrossEncoder's, of version 6.
    np.testing.assert_array_equal(keras_bert.load(folder).encode(TEXTS), bert.encode(TEXTS, "mean"))


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"modules.json": modules("Transformer", "Pooling", "Dense")}, "Received: Dense. Name a pooling, such as mean"),
        # A SparseEncoder's, whose vectors are not means: load(…).encode(…, "sparse") makes them.
        ({"modules.json": modules("MLMTransformer", "SpladePooling")}, "Received: MLMTransformer, SpladePooling. Name"),
        ({POOLING: {"pooling_mode_lasttoken": True}}, "one pooling of cls, mean, max .* Received: lasttoken."),
        ({POOLING: {"pooling_mode": ["cls", "mean"]}}, "Received: cls and mean."),
        ({POOLING: {"pooling_mode": 1}}, "one pooling of cls, mean, max .* Received: 1."),
        ({"config_sentence_transformers.json": {"default_prompt_name": "query"}}, "no default_prompt_name .* 'query'"),
        ({"config_sentence_transformers.json": {"truncate_dim": 8}}, "no truncate_dim .* Received: 8"),
        ({"modules.json": {"0": "Transformer"}}, "modules.json: needs a JSON array. Received: dict"),
        ({"modules.json": [{"type": "some.Pooling", "path": "../1_Pooling"}]}, "its folder in this one as path"),
        ({"modules.json": [{"type": "some.Pooling", "path": "/etc"}]}, "its folder in this one as path"),
        ({"modules.json": ["Pooling"]}, "needs the type of each module"),
    ],
)
def test_what_is_not_done_here_is_refused_in_one_line(folder, files, said):
    write_files(folder, {**FILES, **({} if "modules.json" in files else {"modules.json": modules("T", "Pooling")})})
    write_files(folder, {**FILES, **files})
    bert = keras_bert.load(folder)
    with pytest.raises(UserError, match=said) as refused:
        bert.encode(TEXTS)
    assert "\n" not in str(refused.value)
    assert bert.encode(TEXTS, "mean").shape == (4, 16)  # What the user names needs none of it.


def test_a_length_that_is_no_number_is_refused(folder):
    write_files(folder, {**FILES, "sentence_bert_config.json": {"max_seq_length": "long"}})
    with pytest.raises(UserError, match="max_seq_length needs a number of tokens. Received: 'long'"):
        keras_bert.load(folder).embedder()


def test_lower_casing_that_only_these_files_ask_for_is_refused(folder):
    """There, sentence-transformers lower-cases before a cased tokenizer; --uncased would strip accents too."""
    write_files(folder, {**FILES, "sentence_bert_config.json": {"do_lower_case": True}})
    assert keras_bert.load(folder).encode(["The cat"]).shape == (1, 16)  # Its tokenizer does so itself.
    with pytest.raises(UserError, match="do_lower_case false, as the tokenizer does not lower-case"):
        keras_bert.load(folder, lower_case=False).encode(["The cat"])


def test_the_length_may_be_the_tokenizers(folder, tmp_path):
    """Version 6 writes it there. A copy's tokenizer has the model's maximum, which would cut no text."""
    write_files(folder, {**FILES, "sentence_bert_config.json": {}})
    with open(os.path.join(folder, "tokenizer_config.json")) as stream:
        write_files(folder, {"tokenizer_config.json": {**json.load(stream), "model_max_length": 9}})
    opened = keras_bert.open_model_folder(folder)
    convert_folder(opened, "huggingface", tmp_path / "copy", opened.vocabulary)
    assert opened.vector_length == keras_bert.open_model_folder(tmp_path / "copy").vector_length == 9
    os.remove(os.path.join(folder, "modules.json"))
    assert opened.vector_length == 40


def test_a_tokenizer_without_a_maximum_is_limited_by_the_positions(folder, tmp_path):
    """transformers writes 10^30 for none, at which sentence-transformers could not cut the texts of a copy."""
    write_files(folder, {**FILES, "sentence_bert_config.json": {}})
    with open(os.path.join(folder, "tokenizer_config.json")) as stream:
        write_files(folder, {"tokenizer_config.json": {**json.load(stream), "model_max_length": 10**30}})
    opened = keras_bert.open_model_folder(folder)
    convert_folder(opened, "huggingface", tmp_path / "copy", opened.vocabulary)
    with open(tmp_path / "copy" / "sentence_bert_config.json") as stream:
        assert json.load(stream)["max_seq_length"] == opened.vector_length == 40


@pytest.mark.parametrize("kind", ["bert", "roberta", "camembert", "albert", "xlm-roberta", "xlnet"])
def test_older_names_of_the_length_are_read(folder, kind):
    """sentence-transformers reads these six; if one were missed, texts would be cut at the model's maximum."""
    write_files(folder, {"modules.json": FILES["modules.json"], f"sentence_{kind}_config.json": {"max_seq_length": 9}})
    assert keras_bert.open_model_folder(folder).vector_length == 9


def test_converting_keeps_how_vectors_are_made(folder, tmp_path):
    """The copy used to embed by the mean."""
    write_files(folder, {**FILES, POOLING: {"pooling_mode": "cls"}})
    opened = keras_bert.open_model_folder(folder)
    assert convert_folder(opened, "huggingface", tmp_path / "copy", opened.vocabulary) == []
    copied, bert = keras_bert.load(tmp_path / "copy"), keras_bert.load(folder)
    np.testing.assert_array_equal(copied.encode(TEXTS), bert.encode(TEXTS))
    assert copied.folder.vectors() == bert.folder.vectors() != keras_bert.load(folder).folder.vectors("cls")
    assert convert_folder(opened, "google", tmp_path / "google", opened.vocabulary) == ["modules.json"]
    write_files(folder, {"modules.json": modules("Transformer", "Pooling", "Dense")})
    assert convert_folder(opened, "huggingface", tmp_path / "other", opened.vocabulary) == ["modules.json"]
    assert not (tmp_path / "other" / "modules.json").exists()
