"""`run.py convert`, `inspect` and `fill` on folders of every kind."""

import os

import pytest
from command_line import give, output_of
from tiny import VOCABULARY, random_model, without_dropout

from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.core.locks import take
from keras_bert.core.whole_files import write_json
from keras_bert.core.yaml_and_json import read_json
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.text.vocabulary import Vocabulary


@pytest.fixture
def folder(tmp_path):
    path = str(tmp_path / "model")
    write_model_folder(path, random_model(), VOCABULARY, lower_case=False)
    return path


def test_converted_there_and_back_fills_the_same(folder, tmp_path):
    google, back = str(tmp_path / "google"), str(tmp_path / "back")
    there = give("convert", "--to", "google", folder, google)
    assert "--do_lower_case=false" in there.output, there.output
    again = give("convert", "--to", "huggingface", "--cased", google, back)
    assert "taken as" not in again.output
    outputs = {output_of("fill", "--model", path, "--cased", "w1 [MASK]") for path in (folder, google, back)}
    assert len(outputs) == 1, outputs


def test_what_google_omits_is_said_with_the_value_in_effect(folder, tmp_path):
    """`strip_accents` None follows lower-casing: the message must name the value that results."""
    path = os.path.join(folder, "tokenizer_config.json")
    config = read_json(path)
    write_json(path, {**config, "strip_accents": None, "tokenize_chinese_chars": False})
    told = give("convert", "--to", "google", folder, str(tmp_path / "google")).output
    assert "cannot be set to strip_accents False, tokenize_chinese_chars False." in told


def test_a_folder_that_is_not_empty_is_left_alone(folder, tmp_path):
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "mine").write_text("precious")
    result = give("convert", "--to", "google", folder, str(taken), status=2)
    assert "needs a new or empty folder" in result.output
    assert os.listdir(taken) == ["mine"]


@pytest.mark.parametrize(
    "command", [("convert", "--to", "google"), ("export", "--format", "litert"), ("export", "--format", "onnx")]
)
def test_a_second_process_may_not_write_the_same_folder(folder, tmp_path, command):
    """Both used to write into the same unfinished folder."""
    target = str(tmp_path / "target")
    lock = take(f"{target}.lock")
    to = [folder, target] if command[0] == "convert" else ["--model", folder, "--output", target]
    assert f"{target}: in use by process" in give(*command, *to, status=2).output
    assert sorted(os.listdir(tmp_path)) == ["model", "target.lock"]
    lock.release()


@pytest.mark.parametrize("exists", [False, True])
def test_whole_or_not_there_at_all(folder, tmp_path, monkeypatch, exists):
    """A disk that fills up midway leaves nothing that looks like a model."""

    def fail(*arguments, **options):
        raise OSError(28, "No space left on device")

    target = tmp_path / "target"
    if exists:
        target.mkdir()
    monkeypatch.setattr(Vocabulary, "to_file", fail)
    give("convert", "--to", "google", folder, str(target), status=2)
    assert sorted(os.listdir(tmp_path)) == (["model", "target"] if exists else ["model"])
    assert not exists or os.listdir(target) == []


def test_inspect_says_what_is_there(folder, tmp_path):
    google = str(tmp_path / "google")
    give("convert", "--to", "google", folder, google)
    for path in (folder, google):
        output = output_of("inspect", path)
        assert "46 tensors" in output
        assert "Parts: encoder, pooler, masked LM head, next sentence head." in output


def test_fill_refuses_an_encoder_alone_in_one_line(tmp_path):
    path = str(tmp_path / "encoder")
    write_model_folder(path, BertEncoder(without_dropout()), VOCABULARY, lower_case=True)
    assert "Parts: encoder, pooler.\n" in output_of("inspect", path)
    result = give("fill", "--model", path, "w1 [MASK]", status=2)
    assert f"Error: {path}: needs a masked LM head" in result.output
