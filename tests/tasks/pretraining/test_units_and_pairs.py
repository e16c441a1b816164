"""Runs with other units of masks and other objectives: what they log, store and refuse."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from corpus import NOUNS
from pretraining import MODEL, metrics, recipe
from said import listen

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core.errors import UserError
from keras_bert.data.collocations import write_collocations
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.inference.loading import load
from keras_bert.tasks.pretraining.data import prepare_run_data, require_word_marks, word_marks_for
from keras_bert.tasks.pretraining.run import pretrain
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.training.run_folder import RunFolder

CHINESE = "我们在北京大学学习中文。他们在上海工作了很长时间。"
SPANS = {"masking.unit": "span", "objective.pair": "none", "objective.span_boundary": True, "training.steps": 4}


@pytest.mark.slow
def test_spans_and_their_boundaries(corpus, tmp_path):
    """Both losses are logged separately and add up; the model folder holds the head and opens without it."""
    run = RunFolder(str(tmp_path / "run"))
    results = pretrain(recipe(corpus, **SPANS), run)
    lines = [line for line in metrics(run) if "loss" in line]
    assert lines and not any("nsp" in name for line in lines for name in line)
    for line in lines:
        assert line["loss"] == pytest.approx(line["mlm_loss"] + line["sbo_loss"])
        assert 0 <= line["sbo_accuracy"] <= 1
    assert results["eval_loss"] == pytest.approx(results["eval_mlm_loss"] + results["eval_sbo_loss"])
    loaded = load(run.path)
    assert loaded.model.sbo_head is None
    assert "masked LM and the span boundary objective" in (tmp_path / "run" / "model" / "README.md").read_text()
    # The next run starts with this head too.
    said, init = listen(), {"init": run.path, "vocabulary.file": str(tmp_path / "run" / "data" / "vocab.txt")}
    pretrain(recipe(corpus, **SPANS, **init), RunFolder(str(tmp_path / "next")))
    assert not any("newly initialized" in line or "not used" in line for line in said)


@pytest.mark.slow
def test_sentence_order(corpus, tmp_path):
    run, said = RunFolder(str(tmp_path / "run")), listen()
    settings = {"objective.pair": "sop", "masking.unit": "ngram", "masking.random_from": "unigram"}
    results = pretrain(recipe(corpus, **settings, **{"training.steps": 4}), run)
    lines = [line for line in metrics(run) if "loss" in line]
    assert all(line["loss"] == pytest.approx(line["mlm_loss"] + line["sop_loss"]) for line in lines)
    assert not any("nsp" in name for line in lines for name in line) and "eval_sop_accuracy" in results
    assert any(line.startswith("Training examples:") and "50.0% in order" in line for line in said)


@pytest.mark.slow
def test_phrases_of_a_list_are_marked_and_masked(corpus, tmp_path):
    phrases = tmp_path / "phrases.txt"
    phrases.write_text("\n".join(f"the {noun}" for noun in NOUNS[:3]))
    settings = {"masking.unit": "phrase", "data.phrases": str(phrases), "training.steps": 2}
    run, said = RunFolder(str(tmp_path / "run")), listen()
    pretrain(recipe(corpus, **settings), run)
    train = ShardSet.open(f"{run.data}/shards/train")
    assert train.meta["phrase_marks"]["phrases"] == 3
    assert 0 < train.meta["phrase_tokens"] < train.meta["tokens"] / 2
    assert any("in phrases: " in line for line in said)


@pytest.mark.slow
def test_collocations_are_learned_with_the_text_and_are_a_part_of_it(corpus, tmp_path):
    """They are prepared by the run or before it; a run that has begun does not go on with others."""
    settings = {"masking.unit": "pmi", "data.collocations": 20, "training.steps": 2}
    run = RunFolder(str(tmp_path / "run"))
    pretrain(recipe(corpus, **settings), run)
    prepared = f"{run.data}/shards"
    shutil.copy(f"{run.data}/vocab.txt", prepared)
    pretrain(recipe(prepared, **{**settings, "data.collocations": 0}), other := RunFolder(str(tmp_path / "other")))
    assert metrics(other) == metrics(run)
    with pytest.raises(UserError, match="made with data.collocations 20. Received: 30. Leave the setting out, or run"):
        pretrain(recipe(prepared, **{**settings, "data.collocations": 30}), RunFolder(str(tmp_path / "more")))
    write_collocations(prepared, Vocabulary.from_file(f"{prepared}/vocab.txt"), 10)
    with pytest.raises(UserError, match="holds a run on other data .*collocations.txt"):
        pretrain(recipe(prepared, **{**settings, "data.collocations": 0, "training.steps": 4}), other)
    own = Path(prepared, "collocations.txt")
    own.write_text(own.read_text()[:-1])
    more = recipe(corpus, **{**settings, "training.steps": 4})
    with pytest.raises(UserError, match="collocations.txt: damaged.* Remove .*shards: the run then prepares its text"):
        pretrain(more, run)
    shutil.rmtree(prepared)
    pretrain(more, run)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"masking.unit": "phrase"}, "needs marks of phrases to mask phrases. Received: none. Run `prepare`"),
        ({"masking.unit": "phrase", "data.phrases": "no.txt"}, "no.txt: cannot be read"),
        ({"masking.unit": "pmi"}, "data.collocations: needs a number for masking.unit pmi, .* data.collocations=40000"),
    ],
)
def test_units_that_the_text_was_not_prepared_for_are_refused(corpus, tmp_path, settings, message):
    with pytest.raises(UserError, match=message):
        pretrain(recipe(corpus, **settings), RunFolder(str(tmp_path / "run")))
    if settings["masking.unit"] == "pmi":
        assert not (tmp_path / "run" / "data" / "vocab.txt").exists(), "refused before anything is prepared"


def test_only_masks_need_collocations():
    """Nothing reads them where next tokens are predicted."""
    settings = {"objective.pair": "none", "masking.validation_unit": "pmi"}
    assert PretrainConfig.from_mapping({}, settings).masks_collocations
    causal = {**settings, "model.attention": "causal", "objective.tokens": "next"}
    assert not PretrainConfig.from_mapping({}, causal).masks_collocations


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"masking.unit": "sentence"}, "masking.unit: needs one of token, word, ngram, span, phrase"),
        ({"masking.random_from": "text"}, "masking.random_from: needs one of vocabulary, unigram"),
        ({"objective.related_share": 0.5}, "objective.related_share: needs 1 for pair nsp"),
        ({"masking.whole_word": True}, "masking.whole_word: is now masking.unit: word"),
        ({"objective.pair": "next"}, "objective.pair: needs one of nsp, sop, related, none"),
        (
            {"objective.span_boundary": True},
            "objective.span_boundary: needs objective.pair none. Received: 'true with objective.pair nsp'",
        ),
        ({"objective.span_boundary": True, "objective.pair": "none"}, "masking.unit: needs span for objective.span_b"),
        (
            {"objective.pair": "none", "data.source": "text", "masking.random_from": "unigram"},
            "masking.random_from: needs another value if data.source is text",
        ),
        (
            {"objective.pair": "none", "data.source": "text", "masking.unit": "phrase"},
            "masking.unit: needs another value if data.source is text",
        ),
        (
            {"objective.pair": "none", "data.source": "text", "masking.unit": "pmi"},
            "masking.unit: needs another value if data.source is text, in which no phrases .* Received: 'pmi'",
        ),
        (
            {"objective.pair": "none", "data.source": "text", "data.phrases": "p"},
            "data.phrases: needs no value if source is text",
        ),
        (
            {"objective.pair": "none", "data.source": "text", "data.text": "body"},
            "data.text: needs no value if source is text, which does not use it. Received: 'body'",
        ),
        (
            {"objective.pair": "none", "data.source": "text", "data.shard_megabytes": 4},
            "data.shard_megabytes: needs no value if source is text",
        ),
        ({"data.phrase_tags": ["NOUN", "noun"]}, "data.phrase_tags.1: needs one of ADJ, .*, X. Received: 'noun'"),
        ({"data.source": "python_documentation"}, "data.files: needs no value if source is python_documentation"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        recipe("text.txt", **settings)


@pytest.mark.parametrize("whole_word, unit", [(False, "token"), (True, "word")])
def test_a_run_of_before_units_resumes(corpus, tmp_path, whole_word, unit):
    """Its config.yaml has whole_word, and its validation masked as training did."""
    now = recipe(corpus, **{"masking.unit": unit, "masking.validation_unit": unit})
    run = RunFolder(str(tmp_path / "run"))
    with run:
        run.claim(now)
    old = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    for section, keys in {
        "masking": ("unit", "validation_unit", "random_from"),
        "data": ("phrases", "phrase_tags"),
    }.items():
        for key in keys:
            del old[section][key]
    del old["objective"]["span_boundary"]
    old["masking"]["whole_word"] = whole_word
    (tmp_path / "run" / "config.yaml").write_text(yaml.safe_dump(old))
    (tmp_path / "run" / "results.json").write_text(json.dumps({"steps": 12}))
    with RunFolder(run.path) as again:
        again.claim(now)
    other = recipe(corpus, **{"masking.unit": "span"})
    with RunFolder(run.path) as again, pytest.raises(UserError, match="masking.unit: "):
        again.claim(other)
    with pytest.raises(UserError, match="masking.whole_word: is now masking.unit"):
        PretrainConfig.from_mapping({"masking": {"whole_word": True, "unit": "word"}, "model": MODEL})


def _chinese(tmp_path, **overrides):
    path = tmp_path / "zh.txt"
    # Each document differs, since duplicates would be removed.
    path.write_text("\n\n".join(f"{CHINESE * 3}{number}年。" for number in range(200)), encoding="utf-8")
    return recipe(str(path), **overrides)


@pytest.mark.parametrize("setting", ["masking.unit", "masking.validation_unit"])
def test_chinese_words_are_marked_by_the_run_itself(tmp_path, setting):
    pytest.importorskip("jieba")
    config = _chinese(tmp_path, **{setting: "word"})
    tokenizer = prepare_run_data(config, str(tmp_path / "data"))
    train = ShardSet.open(str(tmp_path / "data" / "shards" / "train"))
    assert train.meta["word_marks"] == "jieba"
    require_word_marks(train, train.token_counts(), config.masking, tokenizer.vocabulary)


def test_unmarked_chinese_words_are_refused_but_not_single_tokens_or_english(tmp_path, corpus):
    config = _chinese(tmp_path)
    tokenizer = prepare_run_data(config, str(tmp_path / "data"))
    train = ShardSet.open(str(tmp_path / "data" / "shards" / "train"))
    assert not train.has_word_marks
    counts = train.token_counts()
    require_word_marks(train, counts, config.masking, tokenizer.vocabulary)
    for unit in ("word", "ngram", "span", "phrase"):
        masking = recipe(corpus, **{"masking.unit": unit}).masking
        with pytest.raises(UserError, match=rf"Chinese words for masking.unit {unit}: .*whole-words jieba"):
            require_word_marks(train, counts, masking, tokenizer.vocabulary)
    assert word_marks_for(masking, ["Some English text. " * 50, "中文"]) is None
    english = np.bincount(np.full(1000, tokenizer.vocabulary.ids["1"]), minlength=len(counts))
    require_word_marks(train, english, masking, tokenizer.vocabulary)


@pytest.mark.slow
def test_chinese_words_of_raw_text_are_refused(tmp_path):
    text = {"data.source": "text", "objective.pair": "none", "masking.unit": "word"}
    with pytest.raises(UserError, match="Received: data.source text, which marks none. Set data.source=files."):
        pretrain(_chinese(tmp_path, **text), RunFolder(str(tmp_path / "run")))
