"""Text that changes while a run is being set up, and after it has begun."""

import os
import shutil

import pytest
from corpus import documents, write_corpus
from prepared import prepare, shard_settings
from pretraining import recipe
from said import listen

from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.tasks.pretraining import run_text
from keras_bert.tasks.pretraining.batch_sources import open_batch_sources
from keras_bert.tasks.pretraining.data import prepare_run_data
from keras_bert.tasks.pretraining.initialization import text_statistics
from keras_bert.tasks.pretraining.run import Pretraining
from keras_bert.text.vocabulary_learning import learn_vocabulary
from keras_bert.training.run_folder import RunFolder

VOCABULARY = learn_vocabulary(documents(100), 90)


def rewrite(path):
    """Other text in the same place, with a word of its own."""
    path.write_text("\n\n".join(f"{document} Zebra zebra." for document in documents(80, seed=1)), encoding="utf-8")


def knows_zebras(tokenizer):
    return "zebra" in tokenizer.vocabulary.tokens


def token_count(folder):
    return ShardSet.open(files.join(folder, "shards", "train")).meta["tokens"]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_text_that_was_mended_is_prepared_anew(tmp_path, scheme):
    """An --estimate or a failed attempt must not fix the tokens and the vocabulary of the run to come."""
    text, folder, said = tmp_path / "text.txt", f"{scheme}{tmp_path}/data", listen()
    config = recipe(write_corpus(text, 60))
    assert not knows_zebras(prepare_run_data(config, folder))
    rewrite(text)
    before = token_count(folder)
    assert knows_zebras(prepare_run_data(config, folder))
    assert token_count(folder) > before
    told = [line for line in said if "The text has changed since it was prepared (text: [" in line]
    assert len(told) == 1 and told[0].endswith("Making the run's data anew.")
    del said[:]
    prepare_run_data(config, folder)
    assert said == []


def test_a_file_that_joins_a_glob_joins_the_run(tmp_path):
    write_corpus(tmp_path / "1.txt", 40)
    config, folder = recipe(str(tmp_path / "*.txt")), str(tmp_path / "data")
    prepare_run_data(config, folder)
    before = token_count(folder)
    write_corpus(tmp_path / "2.txt", 40, seed=1)
    prepare_run_data(config, folder)
    assert token_count(folder) > 1.5 * before


def test_phrases_and_bad_words_are_known_by_their_content(tmp_path):
    listed, bad = tmp_path / "phrases.txt", tmp_path / "bad.txt"
    listed.write_text("the cat\n")
    bad.write_text("horse\n")
    changes = {"data.phrases": str(listed), "masking.unit": "phrase", "data.filters.bad_words": str(bad)}
    config, folder = recipe(write_corpus(tmp_path / "text.txt", 40), **changes), str(tmp_path / "data")
    prepare_run_data(config, folder)
    meta = ShardSet.open(files.join(folder, "shards", "train")).meta
    listed.write_text("the dog\n")
    prepare_run_data(config, folder)
    marked = ShardSet.open(files.join(folder, "shards", "train")).meta
    assert marked["phrase_marks"]["sha256"] != meta["phrase_marks"]["sha256"]
    bad.write_text("mouse\n")
    prepare_run_data(config, folder)
    assert ShardSet.open(files.join(folder, "shards", "train")).meta["corpus"] != marked["corpus"]


def test_data_half_removed_are_not_taken_for_the_new_texts(tmp_path, monkeypatch):
    """A kill must not leave shards of the old text beside the record of the new one."""
    text, folder = tmp_path / "text.txt", str(tmp_path / "data")
    config = recipe(write_corpus(text, 60))
    prepare_run_data(config, folder)
    rewrite(text)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(files, "remove_folder", _interrupt)
        prepare_run_data(config, folder)
    assert os.path.exists(f"{folder}/shards")
    assert knows_zebras(prepare_run_data(config, folder))


def _interrupt(path):
    raise KeyboardInterrupt


@pytest.mark.parametrize("kept_by", [{"worker": 1}, {"has_begun": True}])
def test_workers_and_runs_that_have_begun_take_the_data_as_they_are(tmp_path, kept_by):
    """The chief has compared the text; a worker that sees it differently must not remove what the others read."""
    text, folder = tmp_path / "text.txt", str(tmp_path / "data")
    config = recipe(write_corpus(text, 60))
    open_batch_sources(config, folder)
    rewrite(text)
    assert not knows_zebras(open_batch_sources(config, folder, **kept_by).tokenizer)


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"data.source": "text", "objective.pair": "none"}])
def test_a_run_binds_its_text_once_it_has_begun(tmp_path, changes):
    """Before that the text may be mended; afterwards other text is refused, even to show results."""
    text, run = tmp_path / "text.txt", RunFolder(str(tmp_path / "run"))
    config = recipe(write_corpus(text, 60), **changes)
    for knows in (False, True):
        with run:
            pretraining = Pretraining(config, run)
            pretraining.build()
            assert knows_zebras(pretraining.tokenizer) == knows
        rewrite(text)
    with run:
        run.write_results({"steps": 1})
        Pretraining(config, run)
    write_corpus(text, 60)
    with run, pytest.raises(UserError, match=r"holds a run on other data .*text.txt', \d+, '\w+'\], now .*--fresh"):
        Pretraining(config, run)


def test_a_run_whose_data_were_removed_still_knows_its_text(tmp_path):
    """Users remove data to free the disk. Another text's vocabulary would give the ids other meanings."""
    text, run = tmp_path / "text.txt", RunFolder(str(tmp_path / "run"))
    config = recipe(write_corpus(text, 60))
    with run:
        Pretraining(config, run).build()
        run.write_results({"steps": 1})
    for _ in range(2):
        shutil.rmtree(run.data)
        with run:
            Pretraining(config, run).build()  # The same text makes the same data again.
    shutil.rmtree(run.data)
    rewrite(text)
    with run, pytest.raises(UserError, match=r"holds a run on other data \(text: .*--fresh"):
        Pretraining(config, run)


def prepare_anew(folder, count):
    """Prepares text of this many documents under the same name as before."""
    shutil.rmtree(folder, ignore_errors=True)
    prepare(documents(count), folder, shard_settings(VOCABULARY, True, 0.1))


def test_a_prepared_folder_with_other_text_is_counted_anew_and_then_bound(tmp_path):
    """Otherwise the run would go on with other batches, from weights counted in the old text."""
    folder, run, said = str(tmp_path / "prepared"), RunFolder(str(tmp_path / "run")), listen()
    config = recipe(folder, initialization="corpus", **{"model.vocab_size": len(VOCABULARY)})
    counts = []
    for count in (60, 60, 80):
        prepare_anew(folder, count)
        with run:
            pretraining = Pretraining(config, run)
            pretraining.build()
            counts.append(text_statistics(config, pretraining.sources, run.data).counts.sum())
    assert counts[0] == counts[1] < counts[2], "the same text is the same, however often it is prepared"
    assert sum(line.startswith("The text has changed since") for line in said) == 1
    with run:
        run.write_results({"steps": 1})
        Pretraining(config, run)
    prepare_anew(folder, 90)
    with run, pytest.raises(UserError, match=r"holds a run on other data \(text: \['train/meta.json', .*--fresh"):
        Pretraining(config, run)


def test_a_run_of_an_older_version_on_a_prepared_folder_is_bound_from_now_on(tmp_path):
    """Such a run did not record the folder's checksums, and must still resume."""
    folder, run = str(tmp_path / "prepared"), RunFolder(str(tmp_path / "run"))
    prepare_anew(folder, 60)
    config = recipe(folder, **{"model.vocab_size": len(VOCABULARY)})
    run.claim(config)
    run.write_results({"steps": 1})
    with run:
        Pretraining(config, run)
    prepare_anew(folder, 80)
    with run, pytest.raises(UserError, match="holds a run on other data"):
        Pretraining(config, run)


def test_a_run_of_an_older_version_is_bound_from_now_on(tmp_path):
    """Such a run did not record its text."""
    text, run = tmp_path / "text.txt", RunFolder(str(tmp_path / "run"))
    config = recipe(write_corpus(text, 60))
    run.claim(config)
    prepare_run_data(config, run.data)
    os.remove(f"{run.data}/text.json")
    run.write_results({"steps": 1})
    with run:
        Pretraining(config, run)
    rewrite(text)
    with run, pytest.raises(UserError, match="holds a run on other data"):
        Pretraining(config, run)


def test_the_documentation_is_looked_for_once(monkeypatch, tmp_path):
    """The demo would read Python's whole library twice, for its vocabulary and for its shards, which takes seconds."""
    read = []
    monkeypatch.setattr(run_text, "python_documentation", lambda: read.append(1) or iter(documents(80)))
    config = recipe(None, **{"data.source": "python_documentation", "data.files": []})
    prepare_run_data(config, str(tmp_path))
    assert read == [1] and token_count(str(tmp_path)) > 500


@pytest.mark.parametrize("entry", [".", "**", "**/*.txt", "*/*/*.yaml", "{}", "file://{}"])
def test_a_run_inside_the_folder_of_its_text_is_refused_before_it_writes_there(entry, tmp_path, monkeypatch):
    """It would learn from its own settings and log, and could not resume, because the log had changed."""
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "text.txt", 40)
    with pytest.raises(UserError, match=r"^data.files: .* takes in /.*/runs/one/\w+\.\w+\. Give .*--output\.$"):
        Pretraining(recipe(entry.format(tmp_path)), RunFolder("runs/one"))
    assert os.listdir(tmp_path) == ["text.txt"]


@pytest.mark.parametrize("entry", ["*.txt", "*", "text.txt", "other/**", "runs/one/given/text.jsonl"])
def test_a_run_may_be_beside_its_text(entry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_text.require_outside(RunFolder("runs/one"), recipe(entry))
