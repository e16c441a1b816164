"""What a run reads: the folder that `prepare` wrote, as it is, or an error that says why not."""

import json
import os
import shutil

import pretraining
import pytest
from corpus import NOUNS, documents, write_corpus
from prepared import prepare, shard_settings

from keras_bert.config.corpus import CorpusConfig, FilterConfig
from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import read_json
from keras_bert.data.corpus.documents import Corpus
from keras_bert.data.shards.prepare import prepare as prepare_text
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.inference.loading import load
from keras_bert.tasks.pretraining.batch_sources import open_batch_sources
from keras_bert.tasks.pretraining.data import prepare_run_data
from keras_bert.tasks.pretraining.run import pretrain
from keras_bert.text.marks import read_phrases
from keras_bert.text.vocabulary_learning import learn_vocabulary
from keras_bert.training.run_folder import RunFolder

VOCABULARY = learn_vocabulary(documents(100), 90, lower_case=False)
CASED = shard_settings(VOCABULARY, False, 0.1)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("prepared") / "out")
    prepare(documents(100), folder, CASED)
    return folder


def recipe(*files, **overrides):
    sizes = {"model.vocab_size": 90, "training.steps": 2, "training.log_every": 1, "training.evaluate_every": 2}
    return pretraining.recipe("", **{"data.files": [str(file) for file in files], **sizes, **overrides})


def run_data(config, folder):
    return prepare_run_data(config, str(folder))


@pytest.mark.slow
def test_a_run_on_a_prepared_folder(prepared, tmp_path):
    """Its shards are not copied, and the model folder gets its vocabulary and casing."""
    run = RunFolder(str(tmp_path / "run"))
    assert pretrain(recipe(prepared), run)["steps"] == 2
    assert not os.path.exists(os.path.join(run.data, "shards"))
    tokenizer = load(run.path).tokenizer
    assert tokenizer.vocabulary.tokens == VOCABULARY.tokens and tokenizer.lower_case is False


def test_the_vocabulary_must_agree(prepared, tmp_path):
    VOCABULARY.to_file(tmp_path / "same.txt")
    same = recipe(prepared, **{"vocabulary.file": str(tmp_path / "same.txt")})
    assert run_data(same, tmp_path / "a").vocabulary.tokens == VOCABULARY.tokens
    type(VOCABULARY)([*VOCABULARY.tokens[:-1], "other"]).to_file(tmp_path / "other.txt")
    with pytest.raises(UserError, match="made with the vocabulary in .*other.txt, which is different"):
        run_data(recipe(prepared, **{"vocabulary.file": str(tmp_path / "other.txt")}), tmp_path / "b")
    with pytest.raises(UserError, match=r"needs model.vocab_size \(80\) rows. Received: 90. Set model.vocab_size=90"):
        run_data(recipe(prepared, **{"model.vocab_size": 80}), tmp_path / "c")


def test_a_run_stays_with_its_vocabulary(prepared, tmp_path):
    """A folder prepared anew under the same name is not the one that the run began with."""
    swapped = type(VOCABULARY)([*VOCABULARY.tokens[:-2], VOCABULARY.tokens[-1], VOCABULARY.tokens[-2]])
    swapped.to_file(tmp_path / "vocab.txt")
    with pytest.raises(UserError, match="train/meta.json: needs the vocabulary it was made with, of 90 pieces"):
        run_data(recipe(prepared), tmp_path)


def test_the_casing_must_agree(prepared, tmp_path):
    uncased = str(tmp_path / "uncased")
    prepare(documents(20), uncased, shard_settings(VOCABULARY, True, 0.1))
    with pytest.raises(UserError, match="uncased: made with vocabulary.lower_case True. Received: False"):
        run_data(recipe(uncased, **{"vocabulary.lower_case": False}), tmp_path / "a")
    assert run_data(recipe(prepared, **{"vocabulary.lower_case": False}), tmp_path / "b").lower_case is False


def test_the_filters_must_agree(tmp_path):
    """A recipe that asks for filtered text must not train on text that is unfiltered or filtered otherwise."""
    text, folder = write_corpus(tmp_path / "text.txt", 60), str(tmp_path / "filtered")
    corpus = Corpus([text], CorpusConfig(filters=FilterConfig(min_words=5)))
    prepare_text(corpus, CASED, folder)
    run_data(recipe(folder), tmp_path / "a")
    run_data(recipe(folder, **{"data.filters.min_words": 5}), tmp_path / "b")
    told = r"filtered: made with data.filters.min_words 5. Received: 6. Leave the setting out, or run `prepare` again"
    with pytest.raises(UserError, match=told):
        run_data(recipe(folder, **{"data.filters.min_words": 6}), tmp_path / "c")


def test_the_phrases_must_agree(tmp_path):
    """A recipe with phrases of medicine must not mask those of law."""
    for name in NOUNS[:2]:
        (tmp_path / name).write_text(f"the {name}\n")
    cat, dog = (str(tmp_path / name) for name in NOUNS[:2])
    folder, unmarked = str(tmp_path / "marked"), str(tmp_path / "unmarked")
    marks = {"phrases": read_phrases(cat), "phrase_tags": ["NOUN", "PROPN"]}
    prepare(documents(40), folder, shard_settings(VOCABULARY, False, 0.1, **marks))
    prepare(documents(40), unmarked, CASED)
    same = recipe(folder, **{"data.phrases": cat, "data.phrase_tags": ["PROPN", "NOUN"]})
    run_data(same, tmp_path / "a")
    run_data(recipe(folder), tmp_path / "b")
    remedy = "Leave the setting out, or run `prepare` again with it"
    told = rf"marked: made with data.phrases 1 phrases, SHA-256 \w{{12}}…. Received: .*dog, 1 phrases, .*{remedy}"
    with pytest.raises(UserError, match=told):
        run_data(recipe(folder, **{"data.phrases": dog}), tmp_path / "c")
    with pytest.raises(UserError, match=rf"unmarked: made with data.phrases none. Received: .*{remedy}"):
        run_data(recipe(unmarked, **{"data.phrases": cat}), tmp_path / "d")
    with pytest.raises(UserError, match=rf"data.phrase_tags \['NOUN', 'PROPN'\]. Received: \['VERB'\]. {remedy}"):
        run_data(recipe(folder, **{"data.phrase_tags": ["VERB"]}), tmp_path / "e")


def test_the_share_of_validation_must_agree(prepared, tmp_path):
    """Except where the recipe leaves it at its default, or shards of an older version do not record it."""
    run_data(recipe(prepared, **{"data.validation_share": 0.02}), tmp_path / "a")
    told = "out: made with data.validation_share 0.1. Received: 0.3. Leave the setting out, or run `prepare` again"
    with pytest.raises(UserError, match=told):
        run_data(recipe(prepared, **{"data.validation_share": 0.3}), tmp_path / "b")
    older = tmp_path / "older"
    shutil.copytree(prepared, older)
    path = older / "train" / "meta.json"
    path.write_text(json.dumps({key: value for key, value in read_json(path).items() if key != "validation_share"}))
    run_data(recipe(older, **{"data.validation_share": 0.3}), tmp_path / "c")


def test_a_run_filters_the_text_it_prepares(tmp_path):
    """The vocabulary and the shards come from the same documents."""
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(f"Zebra menu\n{document}" for document in documents(60)))
    config = recipe(text, **{"data.filters": "c4", "data.filters.repeated_spans": 0})
    tokenizer = run_data(config, tmp_path / "run")
    assert not any("zeb" in token for token in tokenizer.vocabulary.tokens)
    corpus = ShardSet.open(tmp_path / "run/shards/train").meta["corpus"]
    assert corpus["removed"] == {"terminal_punctuation": 60}


def test_a_prepared_folder_comes_alone(prepared, tmp_path):
    text = write_corpus(tmp_path / "text.txt", 5)
    with pytest.raises(UserError, match="needs a folder written by `prepare` to be the only entry"):
        run_data(recipe(text, prepared), tmp_path / "run")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("files", "needs documents that are held out.*all of the text is one document. Put blank lines between"),
        ("text", r"needs text for (training|validation).*on the other side: 1. Put blank lines between"),
    ],
)
def test_a_text_without_blank_lines_is_told_what_helps(tmp_path, source, told):
    """Neither more text nor another share can hold out part of a single document."""
    path = tmp_path / "text.txt"
    path.write_text("\n".join(documents(60)))
    config = recipe(path, **{"data.source": source, "objective.pair": "none"})
    with pytest.raises(UserError, match=told):
        open_batch_sources(config, str(tmp_path / "run"))
    assert source == "files" or os.listdir(tmp_path / "run") == ["text.json"]  # Nothing was learned.


def test_a_small_text_needs_a_larger_share_for_validation(tmp_path):
    """A small share of 25 documents holds out one, which has no other to draw random next sentences from."""
    config = recipe(write_corpus(tmp_path / "text.txt", 25), **{"data.validation_share": 0.001})
    told = r"two validation documents .* Received: 1 in 1 shards. Raise data.validation_share, put blank lines"
    with pytest.raises(UserError, match=told):
        open_batch_sources(config, str(tmp_path / "run"))


def test_a_lost_worker_is_explained_in_terms_of_a_run(tmp_path, monkeypatch):
    """`pretrain` has no --workers to lower."""

    def lose_one(function, batches, workers, remedy):
        raise UserError(remedy)

    monkeypatch.setattr("keras_bert.data.shards.prepare._BATCHES_WORTH_PROCESSES", 1)
    monkeypatch.setattr("keras_bert.data.shards.prepare.all_cores", lambda: 2)
    monkeypatch.setattr("keras_bert.data.shards.prepare.map_in_processes", lose_one)
    text = write_corpus(tmp_path / "text.txt", 60)
    with pytest.raises(UserError, match="prepare the text first with `prepare --workers N` and give its folder"):
        run_data(recipe(text), tmp_path / "run")
