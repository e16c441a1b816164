"""The model folder: what is written reads back, and is refused when it does not fit."""

import json
import os

import numpy as np
import pytest
import safetensors.numpy
from tiny import pretraining_batch, random_model

from keras_bert.checkpoints.model_finding import newest_pretrained
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.model_writing import write_model_folder
from keras_bert.errors import UserError
from keras_bert.inference.loading import load
from keras_bert.text.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def model():
    return random_model()


@pytest.fixture(scope="module")
def vocabulary():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [chr(ord("a") + index) for index in range(26)]
    rest = [*letters, *(f"##{letter}" for letter in letters)]
    return Vocabulary([*special, *rest, "the", ".", ","])


@pytest.fixture
def folder(tmp_path, model, vocabulary):
    path = str(tmp_path / "model")
    write_model_folder(path, model, vocabulary, lower_case=True)
    return path


def test_reads_back_equal(folder, model, vocabulary):
    loaded = load(folder)
    batch = pretraining_batch(model.config)
    np.testing.assert_array_equal(loaded.model(batch)["mlm_logits"], model(batch)["mlm_logits"])
    assert loaded.config == model.config
    assert loaded.tokenizer.vocabulary.tokens == vocabulary.tokens and loaded.tokenizer.lower_case


def test_a_folder_is_replaced_whole(folder, model, vocabulary):
    open(os.path.join(folder, "stale"), "w").close()
    write_model_folder(folder, model, vocabulary, lower_case=False)
    assert not os.path.exists(os.path.join(folder, "stale"))
    assert not os.path.exists(f"{folder}.partial")
    assert open_model_folder(folder).lower_case is False


def test_a_kill_while_a_model_is_replaced_leaves_one_that_opens(tmp_path, model, vocabulary, killed_at):
    """By the run's folder too, and for the commands that look for the newest run."""
    run = str(tmp_path / "run")
    folder = os.path.join(run, "model")
    write_model_folder(folder, model, vocabulary, lower_case=True)
    tensors = open_model_folder(folder).tensor_shapes()
    instant, is_over = 0, None
    while not is_over:
        is_over = killed_at(instant, lambda: write_model_folder(folder, model, vocabulary, lower_case=True))
        for name in (folder, run):
            opened = open_model_folder(name)
            assert opened.tensor_shapes() == tensors, instant
            assert Vocabulary.from_file(opened.vocabulary_file).tokens == vocabulary.tokens
        assert newest_pretrained(str(tmp_path)) == run
        instant += 1
    assert os.listdir(run) == ["model"]


def rewrite_weights(folder, change):
    path = os.path.join(folder, "model.safetensors")
    tensors = safetensors.numpy.load_file(path)
    change(tensors)
    safetensors.numpy.save_file(tensors, path)


def test_a_tensor_absent_or_misshapen_is_named(folder):
    rewrite_weights(folder, lambda tensors: tensors.update({"bert.pooler.dense.weight": np.zeros((3, 4), "float32")}))
    with pytest.raises(UserError, match=r"bert.pooler.dense.weight needs shape \[16, 16\].*\[3, 4\]"):
        load(folder)
    rewrite_weights(folder, lambda tensors: tensors.pop("bert.pooler.dense.weight"))
    with pytest.raises(UserError, match="needs the tensor bert.pooler.dense.weight"):
        load(folder)


def test_a_truncated_file_is_named(folder):
    path = os.path.join(folder, "model.safetensors")
    content = open(path, "rb").read()
    open(path, "wb").write(content[: len(content) // 2])
    with pytest.raises(UserError, match="model.safetensors: is not a valid safetensors file"):
        load(folder)


def test_another_models_vocabulary_is_refused(folder, vocabulary):
    Vocabulary(vocabulary.tokens[:-1]).to_file(os.path.join(folder, "vocab.txt"))
    with pytest.raises(UserError, match="vocab.txt: needs 60 rows.*Received: 59"):
        load(folder)


@pytest.mark.parametrize("missing", ["config.json", "vocab.txt", "model.safetensors"])
def test_a_missing_file_is_named(folder, missing):
    os.unlink(os.path.join(folder, missing))
    with pytest.raises(UserError, match=missing):
        load(folder)


def test_config_is_hugging_faces(folder):
    config = json.load(open(os.path.join(folder, "config.json"), encoding="utf-8"))
    assert config["model_type"] == "bert" and config["architectures"] == ["BertForPreTraining"]
