"""What cannot be opened is refused in one line that names the file and the key or tensor."""

import dataclasses
import json
import os
import re
import struct

import numpy as np
import pytest
import safetensors.numpy
from tiny import VOCABULARY, random_model, without_dropout
from unprivileged import unprivileged

from keras_bert.checkpoints.huggingface import SafetensorsFile
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.core.errors import UserError
from keras_bert.inference.loading import load
from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary
from keras_bert.text.standalone_tokenizer import StandaloneTokenizer
from keras_bert.text.vocabulary import Vocabulary, read_tokenizer_settings


@pytest.fixture
def folder(tmp_path):
    path = str(tmp_path / "model")
    write_model_folder(path, random_model(), VOCABULARY, lower_case=True)
    return path


def change_json(folder, name, **changes):
    path = os.path.join(folder, name)
    with open(path, encoding="utf-8") as stream:
        values = json.load(stream)
    with open(path, "w", encoding="utf-8") as stream:
        json.dump({key: value for key, value in {**values, **changes}.items() if value is not ...}, stream)


def refusal(folder):
    with pytest.raises(UserError) as refused:
        load(folder)
    assert "\n" not in str(refused.value) and folder in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"model_type": "deberta"}, "model_type 'deberta' is not supported"),
        ({"model_type": "mpnet"}, "model_type 'mpnet' is not supported"),
        ({"model_type": ..., "architectures": ["AlbertModel"]}, "the architecture 'AlbertModel' is not supported"),
        ({"architectures": "BertModel"}, "architectures: needs a list of names of classes. Received: 'BertModel'"),
        ({"architectures": 5}, "architectures: needs a list of names of classes. Received: 5"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type 'relative_key' is not supported"),
        ({"keras_bert": True}, "config.json: keras_bert: needs an object. Received: True"),
        ({"keras_bert": "sst2", "is_decoder": True}, "config.json: keras_bert: needs an object. Received: 'sst2'"),
        ({"keras_bert": ["sst2"]}, r"config.json: keras_bert: needs an object. Received: \['sst2'\]"),
        ({"is_decoder": "yes"}, "is_decoder 'yes' is not supported"),
        ({"add_cross_attention": True}, "add_cross_attention True is not supported"),
        ({"quantization_config": {"bits": 4}}, "quantization_config .* is not supported"),
        ({"hidden_act": "prelu"}, "hidden_act: needs one of gelu, .*, linear. Received: 'prelu'"),
        ({"hidden_size": 18}, "hidden_size: needs a multiple"),
        ({"hidden_size": "many"}, "hidden_size: needs a whole number"),
        ({"vocab_size": 61}, r"word_embeddings.weight needs shape \[61, 16\].*Received: \[60, 16\]"),
        ({"vocab_size": 59}, "vocab.txt: needs at most 59 rows.*Received: 60. Is it another"),
        ({"num_hidden_layers": 3}, "needs the tensor bert.encoder.layer.2.attention.self.query.weight"),
        ({"intermediate_size": 64}, r"intermediate.dense.weight needs shape \[64, 16\].*Received: \[32, 16\]"),
    ],
)
def test_a_config_that_is_not_these_weights_or_not_a_bert(folder, changes, message):
    change_json(folder, "config.json", **changes)
    with pytest.raises(UserError, match=message):
        load(folder)
    refusal(folder)


def test_a_config_without_the_newer_fields_is_a_berts(folder):
    """As in the first published folders: no model_type, no architectures, no layer_norm_eps."""
    change_json(folder, "config.json", model_type=..., architectures=..., layer_norm_eps=...)
    assert load(folder).config == without_dropout()


@pytest.mark.parametrize("content", [b"{not json", b"[1, 2]", b"", b"\xff\xfe"])
def test_a_broken_config(folder, content):
    with open(os.path.join(folder, "config.json"), "wb") as stream:
        stream.write(content)
    assert "config.json: " in refusal(folder)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"tokenizer_class": "BertJapaneseTokenizer"}, "Received: BertJapaneseTokenizer"),
        ({"do_basic_tokenize": False}, "Received: do_basic_tokenize false"),
    ],
)
def test_another_tokenizer(folder, changes, message):
    change_json(folder, "tokenizer_config.json", **changes)
    assert message in refusal(folder)


@pytest.mark.parametrize(("missing", "told"), [("vocab.txt", "needs vocab.txt"), ("config.json", "config.json")])
def test_a_missing_file(folder, missing, told):
    os.unlink(os.path.join(folder, missing))
    assert told in refusal(folder)


def altered(content):
    """The header says that the first tensor lies behind the file's end."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    next(value for name, value in header.items() if name != "__metadata__")["data_offsets"] = [0, 10**9]
    header = json.dumps(header).encode()
    return struct.pack("<Q", len(header)) + header + content[8 + length :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: content[:5],
        lambda content: b"",
        lambda content: b"<html>Not found</html>" * 100,
        lambda content: content[:8] + b"\xff" * 40 + content[48:],
        lambda content: struct.pack("<Q", 2**60) + content[8:],
        altered,
    ],
    ids=["half", "one byte short", "five bytes", "empty", "a web page", "header garbage", "huge header", "offsets"],
)
def test_damaged_weights(folder, damage):
    path = os.path.join(folder, "model.safetensors")
    with open(path, "rb") as stream:
        content = stream.read()
    with open(path, "wb") as stream:
        stream.write(damage(content))
    assert "model.safetensors: is not a valid safetensors file" in refusal(folder)


def test_a_clone_without_git_lfs(folder):
    """The library would speak of a header that is too large."""
    with open(os.path.join(folder, "model.safetensors"), "w") as stream:
        stream.write("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    assert "a Git LFS pointer, not the weights: git lfs pull fetches them" in refusal(folder)


def test_weights_and_folders_without_permission_to_read(tmp_path, monkeypatch):
    """The library says that there is no such file, and a folder seems to hold no model."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"weights")
    path.chmod(0)
    (tmp_path / "locked").mkdir(mode=0)
    with unprivileged(tmp_path, monkeypatch):
        with pytest.raises(PermissionError) as caught:
            SafetensorsFile(path.name)
        with pytest.raises(UserError, match="locked: cannot be read .Permission denied."):
            open_model_folder("locked")
    assert caught.value.filename == path.name


def test_weights_of_something_else(folder):
    safetensors.numpy.save_file({"conv.weight": np.zeros(3)}, os.path.join(folder, "model.safetensors"))
    assert "needs the tensor bert.embeddings.word_embeddings.weight" in refusal(folder)


def test_weights_of_two_berts(folder):
    path = os.path.join(folder, "model.safetensors")
    tensors = safetensors.numpy.load_file(path)
    two = {f"{side}.{name}": value for side in ("question", "context") for name, value in tensors.items()}
    safetensors.numpy.save_file(two, path)
    assert "needs one BERT. Received: several (context.bert.embeddings" in refusal(folder)


@pytest.mark.parametrize("content", ["{}", "{", '{"weight_map": {"x": "../x.safetensors"}}', '{"weight_map": 3}'])
def test_a_broken_index(folder, content):
    os.unlink(os.path.join(folder, "model.safetensors"))
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as stream:
        stream.write(content)
    assert "model.safetensors.index.json: " in refusal(folder)


def test_no_weights(folder):
    os.unlink(os.path.join(folder, "model.safetensors"))
    assert "needs model.safetensors (or pytorch_model.bin) and lacks it" in refusal(folder)


def write_tokenizer_json(folder, normalizer=(), model=(), **changes):
    """Replaces vocab.txt with a tokenizer.json as transformers writes it."""
    os.unlink(os.path.join(folder, "vocab.txt"))
    kept = {"type": "BertNormalizer", "lowercase": True, "strip_accents": None, "handle_chinese_chars": True}
    content = {
        "normalizer": {**kept, **dict(normalizer)},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "vocab": VOCABULARY.ids, **dict(model)},
        **changes,
    }
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as stream:
        json.dump(content, stream)


@pytest.mark.parametrize(
    "content, message",
    [
        ({"normalizer": {"type": "Lowercase"}}, r"needs BERT's normalizer \(BertNormalizer\). Received: Lowercase"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, r"pre_tokenizer \(BertPreTokenizer\). Received: Whitespace"),
        ({"pre_tokenizer": None}, "Received: None"),
        ({"pre_tokenizer": ["BertPreTokenizer"]}, "a pre_tokenizer that are objects"),
        ({"model": {"max_input_chars_per_word": 0}}, "needs a positive whole number as max_input_chars_per_word"),
        (
            {"normalizer": {"type": "BertNormalizer", "lowercase": "false"}},
            "tokenizer.json: needs true or false as lowercase. Received: 'false'",
        ),
    ],
)
def test_a_tokenizer_json_that_is_not_berts(folder, content, message):
    """Its texts would silently be split as BERT splits them."""
    write_tokenizer_json(folder, **content)
    assert re.search(message, refusal(folder))


OWN, GENERIC = "BertTokenizer", "PreTrainedTokenizerFast"


@pytest.mark.parametrize(
    "config, normalizer, expected, told",
    [
        # The default of BERT's class counts where tokenizer_config.json is silent.
        (None, {"lowercase": False}, (True, None, True), "do_lower_case (true, not false)"),
        ({"tokenizer_class": OWN}, {"handle_chinese_chars": False}, (True, None, True), "tokenize_chinese_chars (true"),
        ({"do_lower_case": False}, {"strip_accents": True}, (False, None, True), "strip_accents (false, not true)"),
        ({"do_lower_case": False}, {"lowercase": False}, (False, None, True), None),
        ({"do_lower_case": True, "strip_accents": True}, {}, (True, True, True), None),
        # A generic class follows tokenizer.json, null included.
        (
            {"tokenizer_class": GENERIC, "strip_accents": True},
            {"lowercase": False},
            (False, None, True),
            "tokenizer.json takes precedence, as in transformers; tokenizer_config.json differs in strip_accents (",
        ),
        ({"tokenizer_class": GENERIC}, {"lowercase": False, "strip_accents": True}, (False, True, True), None),
    ],
)
def test_which_of_two_files_that_disagree_counts(folder, config, normalizer, expected, told):
    """As in transformers 5, or ids would not be those the model was trained on; and the user is told."""
    write_tokenizer_json(folder, normalizer)
    path = os.path.join(folder, "tokenizer_config.json")
    os.unlink(path)
    if config is not None:
        with open(path, "w", encoding="utf-8") as stream:
            json.dump(config, stream)
    opened = open_model_folder(folder)
    assert dataclasses.astuple(opened.tokenizer)[:3] == expected
    assert opened.vocabulary.tokens == VOCABULARY.tokens
    assert told in opened.notes[0] if told else opened.notes == []
    assert not any("do_lower_case" in note for note in open_model_folder(folder, expected[0]).notes)


def test_a_guessed_casing_is_said(folder):
    change_json(folder, "tokenizer_config.json", do_lower_case=...)
    assert "no file says whether texts are lower-cased" in open_model_folder(folder).notes[0]
    assert open_model_folder(folder, lower_case=False).notes == []


def test_the_longest_word_is_the_files_own(folder, tmp_path):
    """Words of 101 to 200 characters used to be split where the model was trained with [UNK]."""
    write_tokenizer_json(folder, model={"max_input_chars_per_word": 2})
    loaded, (known, unknown) = load(folder), (VOCABULARY.ids["w1"], VOCABULARY.unk_id)
    assert loaded.tokenizer(["w1 w12", "w1\0 w12\0"]).to_list() == [[known, unknown]] * 2
    write_model_folder(
        str(tmp_path / "again"), loaded.model, loaded.tokenizer.vocabulary, **vars(loaded.folder.tokenizer)
    )
    assert open_model_folder(tmp_path / "again").tokenizer == loaded.folder.tokenizer
    assert StandaloneTokenizer.from_folder(str(tmp_path / "again")).tokenize("w1 w12") == [known, unknown]


@pytest.mark.parametrize(
    "config, expected",
    [
        ({}, (True, None, True)),
        ({"do_lower_case": False}, (False, None, True)),
        ({"do_lower_case": False, "strip_accents": True}, (False, True, True)),
        ({"strip_accents": False, "tokenize_chinese_chars": False}, (True, False, False)),
        ({"do_lower_case": 0, "strip_accents": None}, (False, None, True)),
    ],
)
def test_the_settings_of_tokenizer_config(folder, config, expected):
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as stream:
        json.dump(config, stream)
    tokenizer = open_model_folder(folder).tokenizer
    assert (tokenizer.lower_case, tokenizer.strip_accents, tokenizer.split_chinese) == expected


@pytest.mark.parametrize("kind", [Vocabulary, SentencePieceVocabulary])
def test_a_flag_in_quotes_is_not_taken_for_true(tmp_path, kind):
    """Texts used to be silently lower-cased for a cased model."""
    (tmp_path / kind.file_name).touch()
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": "false"}')
    with pytest.raises(UserError, match="tokenizer_config.json: needs true or false as do_lower_case. Received: 'fal"):
        read_tokenizer_settings(str(tmp_path))
