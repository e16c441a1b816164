"""Starting from another program's model folder: `--init` where heads are missing, and Google's format."""

import os
import pathlib
import shutil

import numpy as np
import pytest
from command_line import output_of, sets
from corpus import write_corpus
from goldens import COMMITTED
from hub_server import Repository, hub_server, own_cache, point_to
from said import listen
from tiny import without_dropout, write_random

from keras_bert.api.pretraining import _model_settings, pretraining_recipe
from keras_bert.checkpoints.model_folder import given_prefix_space, open_model_folder
from keras_bert.checkpoints.writing import convert_folder, write_model_folder
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import find_config
from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import read_yaml
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.models.roberta.kind import RobertaConfig
from keras_bert.models.tensor_names import ENCODER, MASKED_LM_HEAD
from keras_bert.tasks.pretraining.data import run_vocabulary
from keras_bert.tasks.pretraining.run import Pretraining
from keras_bert.text.standalone_tokenizer import AddedToken
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.vocabulary_learning import learn_byte_pieces, learn_vocabulary
from keras_bert.training.run_folder import RunFolder

SETTINGS = sets(
    "phases=[{sequence_length: 16, batch_size: 4, max_predictions_per_seq: 3}]",
    "data.validation_share=0.2",
    "training.jit_compile=false",
    "training.evaluation_examples=4",
    "optimizer.learning_rate=1e-9",
    "optimizer.warmup_steps=0",
    "examples=[]",
)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """(corpus, the folder of an encoder alone, the same in Google's format)."""
    place = tmp_path_factory.mktemp("init")
    corpus = write_corpus(place / "text.txt", count=60)
    with open(corpus, encoding="utf-8") as stream:
        vocabulary = learn_vocabulary(stream.read().split("\n"), 60)
    encoder = BertEncoder(without_dropout(vocab_size=len(vocabulary), num_hidden_layers=1))
    folder, google = write_random(place / "encoder", encoder, vocabulary), str(place / "google")
    convert_folder(open_model_folder(folder), "google", google, vocabulary)
    return corpus, folder, google


def pretrain(corpus, init, output, *more, config="wiki_mini", status=0):
    """What it says."""
    files, more = ("--data", corpus, "--output", output), [*more, *(["--init", init] if init else [])]
    return output_of("pretrain", "--config", config, *files, *SETTINGS, "--steps", "1", *more, status=status)


@pytest.mark.slow
def test_heads_that_are_missing_are_listed_and_made_new_from_the_seed(parts, tmp_path):
    """One run from each format; new heads come from the seed, so both runs have the same."""
    corpus, *folders = parts
    runs = [str(tmp_path / name) for name in ("huggingface", "google")]
    listed = ("cls.predictions.transform.dense.weight", "cls/predictions/transform/dense/kernel")
    for folder, run, name in zip(folders, runs, listed, strict=True):
        told = pretrain(corpus, folder, run, "--seed", "7")
        assert ", newly initialized: " in told and name in told
        assert ("taken to be uncased" in told) is (folder == folders[1])
    first, second = map(open_model_folder, runs)
    given = open_model_folder(folders[0])
    for stored, value in first.read(ENCODER).items():
        np.testing.assert_allclose(value, given.tensors.read(stored), atol=1e-6)  # One step of a tiny rate.
    for stored, value in first.read(MASKED_LM_HEAD).items():
        np.testing.assert_array_equal(value, second.tensors.read(stored), stored.attribute)
    assert Vocabulary.from_file(first.vocabulary_file).tokens == Vocabulary.from_file(given.vocabulary_file).tokens


def test_a_tokenizer_that_shards_cannot_be_made_with_is_refused(parts, tmp_path):
    folder = str(tmp_path / "accented")
    opened = open_model_folder(parts[1])
    encoder = BertEncoder(opened.config)
    vocabulary = Vocabulary.from_file(opened.vocabulary_file)
    write_model_folder(folder, encoder, vocabulary, lower_case=True, strip_accents=False)
    assert "strip_accents False" in pretrain(parts[0], folder, str(tmp_path / "run"), status=2)
    assert not os.path.exists(tmp_path / "run")


@pytest.mark.slow
def test_added_tokens_and_padded_rows_go_through_a_run(parts, tmp_path):
    """Otherwise the data would lack the ids of added tokens, or the model the padded rows of its weights."""
    corpus, folder, _ = parts
    base = Vocabulary.from_file(os.path.join(folder, "vocab.txt"))
    vocabulary = Vocabulary(base.tokens, added=[AddedToken(base.tokens[-1] + "x", len(base))])
    encoder = BertEncoder(without_dropout(vocab_size=len(base) + 4, num_hidden_layers=1))
    first, run = write_random(tmp_path / "padded", encoder, vocabulary), str(tmp_path / "run")
    pretrain(corpus, first, run)
    found = open_model_folder(run)
    assert found.config.vocab_size == len(base) + 4 and found.vocabulary.added == vocabulary.added
    assert found.vocabulary.fingerprint == vocabulary.fingerprint


@pytest.mark.slow
def test_a_run_from_the_hub_writes_down_the_commit_and_stays_with_it(parts, tmp_path, monkeypatch):
    """What NAME stands for may change between two starts; a resumed run must neither follow it nor be refused.

    The recipe's own `init` works as --init does: it gives the architecture and the vocabulary too.
    """
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("init: hf:me/bert\n")
    corpus, folder, _ = parts
    run, files = str(tmp_path / "run"), {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}
    own_cache(str(tmp_path / "cache"), monkeypatch)
    with hub_server() as hub:
        point_to(hub.url, monkeypatch)
        hub.repositories["me/bert"] = repository = Repository(files)
        first = repository.refs["main"]
        told = pretrain(corpus, None, run, config=recipe)
        written = read_yaml(os.path.join(run, "config.yaml"))
        assert written["init"] == f"hf:me/bert@{first}" and written["model"]["hidden_size"] == 16
        assert f"Starting from the weights of hf:me/bert@{first}." in told
        card = pathlib.Path(run, "model", "README.md").read_text()
        assert "base_model: me/bert\n" in card and "| perplexity |" in card
        second = repository.publish({**files, "README.md": b"Another."})
        told = pretrain(corpus, f"hf:me/bert@{second}", run, "--steps", "2", config=recipe, status=2)
        assert first in told and second in told
        assert "Resuming from step 1." in pretrain(corpus, "hf:me/bert", run, "--steps", "2", config=recipe)
        told = pretrain(corpus, f"hf:me/bert@{first}", run, "--steps", "2", config=recipe)
        assert "is finished: 2 steps" in told


def begun(path, **overrides):
    """A run that has a checkpoint."""
    run = RunFolder(str(path))
    with run:
        run.claim(PretrainConfig.from_mapping({"training": {"steps": 10}}, overrides))
    os.makedirs(os.path.join(run.checkpoints, "step-000000001"))
    return run


COMMIT = "0123456789" * 4


@pytest.mark.parametrize(
    ("recorded", "given", "is_enough"),
    [
        ("gone/model", "gone/model", True),
        (f"hf:me/bert@{COMMIT}", f"hf:me/bert@{COMMIT}", True),
        (f"hf:me/bert@{COMMIT}", "hf:me/bert", True),
        (f"hf:me/bert@{COMMIT}", "hf:me/bert@other", False),
        (f"hf:me/bert@{COMMIT}", "hf:me/ber", False),
        ("gone/model@2", "gone/model", False),
        (None, "gone/model", False),
    ],
)
def test_a_run_that_has_begun_does_without_a_model_that_is_gone(tmp_path, monkeypatch, recorded, given, is_enough):
    def gone(path, lower_case=None):
        raise UserError(f"{path}: is gone.")

    # The command of the same name hides the module.
    monkeypatch.setitem(_model_settings.__globals__, "open_model_folder", gone)
    run = begun(tmp_path / "run", init=recorded, **{"model.num_hidden_layers": 3, "vocabulary.lower_case": False})
    if not is_enough:
        with pytest.raises(UserError, match="is gone"):
            _model_settings(given, None, run)
        return
    said = listen()
    found = _model_settings(given, None, run)
    assert any("The run has begun and does without it." in line for line in said)
    assert (found["init"], found["vocabulary.lower_case"]) == (recorded, False)
    assert found["model"]["num_hidden_layers"] == 3
    for new in (None, RunFolder(str(tmp_path / "new"))):
        with pytest.raises(UserError, match="is gone"):
            _model_settings(given, None, new)


@pytest.mark.parametrize(
    ("recorded", "given", "opened"),
    [
        (f"hf:me/bert@{COMMIT}", "hf:me/bert", f"hf:me/bert@{COMMIT}"),
        (f"hf:me/bert@{COMMIT}", "hf:me/bert@main", "hf:me/bert@main"),
        (f"hf:me/bert@{COMMIT}", "hf:me/ber", "hf:me/ber"),
        ("models/bert@2", "models/bert", "models/bert"),
        (None, "hf:me/bert", "hf:me/bert"),
    ],
)
def test_a_run_that_has_begun_stays_with_its_commit(tmp_path, monkeypatch, recorded, given, opened):
    """With a new commit under the same name, the run's own command would be refused for another `init`."""

    def not_here(path, lower_case=None):
        raise UserError(f"{path}: is opened.")

    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.setitem(_model_settings.__globals__, "open_model_folder", not_here)
    values = {"training.steps": 10, "data.source": "python_documentation"}
    run = begun(tmp_path / "run", init=recorded, **values)
    try:
        said = _model_settings(given, None, run)["init"]
    except UserError as error:
        said = str(error).partition(": ")[0]
    assert said == opened
    if opened.endswith(COMMIT):
        monkeypatch.setattr("keras_bert.tasks.pretraining.run.open_model_folder", lambda path: pytest.fail(path))
        config = PretrainConfig.from_mapping({"init": given}, values)
        with run:
            assert Pretraining(config, run).config.init == recorded


def test_the_commit_of_a_model_is_not_asked_for_again(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.setattr("keras_bert.tasks.pretraining.run.open_model_folder", lambda path: pytest.fail(path))
    config = PretrainConfig.from_mapping({"init": f"hf:me/bert@{COMMIT}"})
    with RunFolder(str(tmp_path / "run")) as run:
        assert Pretraining(config, run).config.init == config.init


@pytest.fixture(scope="module")
def roberta(parts, tmp_path_factory):
    """The folder of a RoBERTa that reads texts as they are, as FacebookAI/roberta-base does."""
    vocabulary = learn_byte_pieces(["the cat sat on the mat, a cat sat on a hat"] * 9, 280)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    encoder = BertEncoder(RobertaConfig(len(vocabulary), **sizes, max_position_embeddings=128))
    folder = tmp_path_factory.mktemp("roberta") / "model"
    return write_random(folder, encoder, vocabulary, lower_case=False, prefix_space=False)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("xlnet_mini", {"vocabulary.kind": "wordpiece"}, "vocabulary.kind: needs xlnet for an XLNet. Received: w"),
        ("bart_mini", {"vocabulary.kind": "t5"}, "vocabulary.kind: needs bytes or xlm-roberta for a BART"),
        ("t5_mini", {"vocabulary.kind": "bytes"}, "vocabulary.kind: needs t5 for .*sentinels. Received: bytes"),
        ("bart_mini", {"initialization": "corpus"}, "initialization.position_embeddings: needs random for a BART"),
        ("t5_mini", {"initialization.attention": "mimetic"}, "initialization.attention: needs random for a T5"),
        ("mass_mini", {"initialization.decoder_bias": "unigram"}, "decoder_bias: needs zero for a BART"),
    ],
)
def test_what_a_new_model_has_no_use_for_is_refused_before_anything_is_made(name, changes, message):
    """Otherwise it would be found after hours of preparation, or the run would train on other rows than asked for."""
    with pytest.raises(UserError, match=message):
        pretraining_recipe(find_config("pretrain", name), None, None, None, changes)


def test_lower_case_is_refused_where_the_vocabulary_never_is():
    """Otherwise --uncased would be ignored, and a cased model trained."""
    with pytest.raises(UserError, match="--uncased: needs a vocabulary that may be uncased. Received: .* t5, which"):
        pretraining_recipe(find_config("pretrain", "t5_mini"), None, True, None, {})
    assert pretraining_recipe(find_config("pretrain", "xlnet_mini"), None, True, None, {}).vocabulary.lower_case


def test_a_vocabulary_that_is_there_need_not_be_of_the_recipes_kind(tmp_path):
    """WordPieces with free slots can serve as sentinels; an XLNet's rows need <cls> at their end."""
    file = tmp_path / "vocab.txt"
    Vocabulary([*SPECIAL_TOKENS, *(f"[unused{number}]" for number in range(40)), "a"]).to_file(str(file))
    changes = {"vocabulary.file": str(file), "vocabulary.kind": "wordpiece"}
    config = pretraining_recipe(find_config("pretrain", "t5_mini"), None, None, None, changes)
    assert len(run_vocabulary(config, str(tmp_path / "t5"), list)) == config.model.vocab_size
    config = pretraining_recipe(find_config("pretrain", "xlnet_mini"), None, None, None, changes)
    with pytest.raises(UserError, match="needs rows that end with <cls>, .* for an XLNet. Received: those of a WordP"):
        run_vocabulary(config, str(tmp_path / "xlnet"), list)


def recipe_of(init, **chosen):
    phases = [{"sequence_length": 16, "max_predictions_per_seq": 3}]
    return pretraining_recipe(find_config("pretrain", "continue"), init, None, None, {"phases": phases, **chosen})


@pytest.mark.parametrize(
    ("name", "tokens", "packing", "corruption"),
    [
        ("xlnet", "permuted", "filled", ["infilling", "sentences"]),
        ("encoder_decoders/bart", "decoded", "document", ["infilling", "sentences"]),
        ("encoder_decoders/t5", "decoded", "document", ["sentinels"]),
    ],
)
def test_every_kind_of_model_goes_on_without_a_recipe(name, tokens, packing, corruption):
    """Otherwise the recipe `continue` would refuse every XLNet, BART and T5."""
    folder = os.path.join(COMMITTED, *name.split("/"))
    found = recipe_of(folder).objective
    assert (found.tokens, found.packing, found.corruption.kinds) == (tokens, packing, corruption)
    with pytest.raises(UserError, match=f"objective.tokens: needs {tokens} for this model.model_type"):
        recipe_of(folder, **{"objective.tokens": "masked"})


def test_the_space_before_a_text_is_the_models_own(roberta, parts):
    """A model that learned first words without a space would be given other pieces for them."""
    assert recipe_of(roberta).vocabulary.prefix_space is False
    assert recipe_of(parts[1]).vocabulary.prefix_space is True
    said = listen()
    assert recipe_of(roberta, **{"vocabulary.prefix_space": True}).vocabulary.prefix_space is True
    assert "vocabulary.prefix_space: True as set, where the model to start from has the other." in "".join(said)


def test_prepare_reads_texts_as_a_model_does_whose_folder_does_not_say(roberta, tmp_path):
    """transformers then puts no space before a text. With one, the shards would be refused for this very model."""
    folder = pathlib.Path(shutil.copytree(roberta, tmp_path / "model"))
    (folder / "tokenizer_config.json").unlink()
    vocabulary, alone = open_model_folder(folder).vocabulary, tmp_path / "own" / "vocab.json"
    vocabulary.to_file(alone)
    found = [given_prefix_space(path, vocabulary) for path in (folder / "vocab.json", alone)]
    assert found == [recipe_of(str(folder)).vocabulary.prefix_space, True] == [False, True]


@pytest.mark.slow
def test_a_run_reads_and_writes_texts_as_its_model_does(roberta, parts, tmp_path):
    """Its shards, and those that `prepare` makes with the model's vocabulary, have no space before the first word."""
    corpus, run, prepared = parts[0], str(tmp_path / "run"), str(tmp_path / "prepared")
    pretrain(corpus, roberta, run, config="continue")
    found = open_model_folder(run)
    assert found.tokenizer.prefix_space is False
    vocabulary = os.path.join(roberta, "vocab.json")
    output_of("prepare", "--input", corpus, "--vocab", vocabulary, "--output", prepared, "--validation-share", "0.2")
    for place in (os.path.join(RunFolder(run).data, "shards"), prepared):
        shards = ShardSet.open(os.path.join(place, "train"), found.vocabulary)
        first = found.vocabulary.tokens[shards.read("00000")[0][0]]
        assert shards.meta["prefix_space"] is False and not first.startswith("Ġ")
    spaced = sets("vocabulary.prefix_space=true")
    told = pretrain(prepared, roberta, str(tmp_path / "other"), *spaced, config="continue", status=2)
    assert "made with vocabulary.prefix_space False. Received: True." in told
