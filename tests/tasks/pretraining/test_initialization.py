"""A run whose weights are initialized from its text: what it keeps of that, and when it no longer needs it."""

import os

import numpy as np
import pytest
from pretraining import MODEL, metrics, recipe, stopped_at
from said import listen

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core.errors import UserError
from keras_bert.inference.loading import load
from keras_bert.tasks.pretraining.initialization import FILE
from keras_bert.tasks.pretraining.run import Pretraining, pretrain
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer
from keras_bert.training.run_folder import RunFolder

UNUSED = "The recipe's initialization is not used, because the run starts from a model."
COUNTING = "Counting co-occurrences of pieces to initialize the word embeddings."


def begun(config, folder):
    """(word embeddings of a new run's model, the lines that it said)."""
    said = listen()
    with RunFolder(str(folder)) as run:
        pretraining = Pretraining(config, run)
        pretraining.build()
        pretraining.restore()
        return pretraining.engine.model.encoder.embeddings.word_embeddings.numpy(), said


@pytest.mark.slow
def test_a_run_that_goes_on_does_not_need_the_vectors(corpus, tmp_path, monkeypatch):
    """A run stopped and resumed without the file has the figures of an uninterrupted one."""
    config = recipe(corpus, initialization="corpus")
    straight, stopped = RunFolder(str(tmp_path / "straight")), RunFolder(str(tmp_path / "stopped"))
    pretrain(config, straight)
    with stopped_at(10, monkeypatch):
        pretrain(config, stopped)
    os.remove(os.path.join(stopped.data, FILE))
    said = listen()
    pretrain(config, stopped)
    assert "Resuming from step 9." in said and COUNTING not in said
    assert metrics(stopped) == metrics(straight)


def test_they_are_made_once_and_anew_when_damaged_or_of_other_settings(corpus, tmp_path):
    config, folder = recipe(corpus, initialization="corpus"), tmp_path / "run"
    first, said = begun(config, folder)
    assert COUNTING in said and first.std() == pytest.approx(0.02, rel=0.15)
    second, said = begun(config, folder)
    assert COUNTING not in said
    np.testing.assert_array_equal(second, first)
    path = folder / "data" / FILE
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    third, said = begun(config, folder)
    assert COUNTING in said
    np.testing.assert_array_equal(third, first)
    shards = sorted((folder / "data" / "shards" / "train").iterdir())[0].stat().st_mtime_ns
    other, said = begun(recipe(corpus, **{"initialization": "corpus", "initialization.window": 1}), folder)
    assert COUNTING in said and not np.array_equal(other, first)
    assert sorted((folder / "data" / "shards" / "train").iterdir())[0].stat().st_mtime_ns == shards


@pytest.mark.slow
def test_text_that_is_read_as_it_is_gives_them_too(corpus, tmp_path):
    text = {"data.source": "text", "objective.pair": "none"}
    config = recipe(corpus, **text, initialization="corpus")
    embeddings, said = begun(config, tmp_path / "run")
    assert COUNTING in said
    paper, said = begun(recipe(corpus, **text), tmp_path / "paper")
    assert COUNTING not in said and not os.path.exists(tmp_path / "paper" / "data" / FILE)
    assert (embeddings != paper).any(axis=1).sum() > 20
    np.testing.assert_array_equal(embeddings[:5], paper[:5])  # [CLS] and the like do not occur in text.


def test_the_unigram_alone_makes_no_vectors(corpus, tmp_path):
    config = recipe(corpus, **{"initialization.decoder_bias": "unigram"})
    embeddings, said = begun(config, tmp_path / "run")
    assert COUNTING not in said
    with np.load(tmp_path / "run" / "data" / FILE) as kept:
        assert kept["counts"].sum() > 1000 and not kept["vectors"].size
    np.testing.assert_array_equal(embeddings, begun(recipe(corpus), tmp_path / "paper")[0])


@pytest.mark.slow
def test_weights_of_a_model_stay_its_own(corpus, tmp_path):
    """Whatever the recipe says, the weights that --init brings are not initialized anew."""
    run = RunFolder(str(tmp_path / "first"))
    pretrain(recipe(corpus, **{"training.steps": 1, "phases.0.batch_size": 2}), run)
    again, said = begun(recipe(corpus, init=run.path, initialization="corpus"), tmp_path / "second")
    assert COUNTING not in said and UNUSED in said
    stored = load(run.path).encoder.embeddings.word_embeddings.numpy()
    np.testing.assert_array_equal(again, stored)

    vocabulary = Vocabulary.from_file(os.path.join(run.model, "vocab.txt"))
    pieces = WordPieceTokenizer(vocabulary)(["catdogs"]).to_list()[0]
    tokens = [*vocabulary.tokens[:-1], "catdogs"]
    file = str(tmp_path / "vocab.txt")
    Vocabulary(tokens).to_file(file)
    extended = recipe(corpus, **{"init": run.path, "vocabulary.file": file})
    begun_with, said = begun(extended, tmp_path / "third")
    assert f"Starting from the weights of {run.path}." in said
    assert "1 rows of the vocabulary are new; each starts as the mean of the pieces it was split into before." in said
    assert UNUSED not in said  # That recipe has no initialization of its own.
    assert len(pieces) > 1 and len(vocabulary) - 1 not in pieces
    np.testing.assert_allclose(begun_with[-1], stored[pieces].mean(axis=0), rtol=1e-5)
    np.testing.assert_array_equal(begun_with[:-1], stored[:-1])


def test_a_vocabulary_smaller_than_the_width_is_refused(corpus, tmp_path):
    config = recipe(corpus, initialization="corpus", model={**MODEL, "hidden_size": 128})
    with pytest.raises(UserError, match=r"the embeddings' width, 128 pieces. Received: 120.*word_embeddings=random"):
        begun(config, tmp_path / "run")


def test_a_recipe_says_it_in_a_word_or_in_part():
    def initialization(values, **overrides):
        return PretrainConfig.from_mapping(values, overrides).initialization

    corpus, paper = initialization({"initialization": "corpus"}), initialization({})
    assert (corpus.word_embeddings, corpus.decoder_bias) == ("corpus", "unigram")
    assert initialization({"initialization": "corpus"}, initialization="paper") == paper
    part = initialization({"initialization": "corpus"}, **{"initialization.attention": "random"})
    assert (part.word_embeddings, part.attention) == ("corpus", "random")
    assert initialization({"initialization": {"attention": "mimetic"}}).word_embeddings == "random"
    with pytest.raises(UserError, match=r"needs paper or corpus, or a mapping of settings. Received: 'corpsu'"):
        initialization({"initialization": "corpsu"})
    with pytest.raises(UserError, match="initialization.decoder_bias: needs one of zero, unigram"):
        initialization({"initialization": {"decoder_bias": "log"}})
