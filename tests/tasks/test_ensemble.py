"""Which models answer together: those that read the same rows and mean the same by their outputs."""

import dataclasses
import json
import os
import shutil

import numpy as np
import pytest
from served import HEADS, write_served
from squad_file import paragraph, question, write_squad
from tiny import sentencepiece_vocabulary

from keras_bert.core.errors import UserError
from keras_bert.tasks.ensemble import Ensemble
from keras_bert.tasks.finetuned_model import FinetunedModel
from keras_bert.tasks.problem import mean_of_softmax
from keras_bert.text.tokenizer_files import TokenizerSettings

READING = {"task": "text", "texts": ["text"], "label": "label", "max_length": 16}
LABELS = ("no", "maybe", "yes")


@pytest.fixture(scope="module")
def dev(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "dev.jsonl"
    rows = [{"text": f"the cat {number}", "label": LABELS[number % 3]} for number in range(30)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_served(tmp_path_factory.mktemp("models") / "first", "single", **READING)


@pytest.fixture(scope="module")
def first(folder, dev):
    return FinetunedModel(folder, {"dev": dev})


def changed(folder, path, file, change):
    """A copy of a model's folder with one of its files changed."""
    shutil.copytree(folder, path)
    with open(os.path.join(path, file), "r+", encoding="utf-8") as stream:
        content = change(stream.read())
        stream.seek(0)
        stream.truncate()
        stream.write(content)
    return str(path)


def with_fields(**fields):
    return lambda content: json.dumps({**json.loads(content), **fields})


@pytest.mark.parametrize(
    "file, change, message",
    [
        ("tokenizer_config.json", with_fields(do_lower_case=False), "tokenizer. .* lower_case False instead of True"),
        (
            "tokenizer_config.json",
            with_fields(strip_accents=False),
            "tokenizer. .* strip_accents False instead of True",
        ),
        (
            "tokenizer_config.json",
            with_fields(tokenize_chinese_chars=False),
            "tokenizer. .* split_chinese False instead",
        ),
        ("vocab.txt", lambda text: text.replace("cat\n", "dog\n"), "vocabulary. .* token 110 'dog' instead of 'cat'"),
        (
            "config.json",
            with_fields(id2label={"0": "no", "1": "yes", "2": "maybe"}),
            "labels. .* label 1 'yes' instead",
        ),
        ("config.json", with_fields(problem_type="multi_label_classification"), "head. .* problem_type 'multi_label_"),
        ("config.json", with_fields(keras_bert={**READING, "max_length": 8}), "input. .* max_length 8 instead of 16"),
    ],
)
def test_models_that_differ_are_refused_with_what_differs(first, folder, dev, tmp_path, file, change, message):
    """Otherwise a model with another tokenizer would be scored on rows that it would never have made."""
    other = FinetunedModel(changed(folder, tmp_path / "other", file, change), {"dev": dev})
    with pytest.raises(UserError, match=f"needs models with the same .*{message}.* Score it by itself"):
        Ensemble([first, first, other])


def test_models_of_pairs_and_of_single_texts_do_not_answer_together(first, dev, tmp_path):
    """Otherwise a model of pairs would be scored on the single texts of the model named first."""
    pairs = {**READING, "pair": True, "texts": ["text", "other"]}
    other = FinetunedModel(write_served(tmp_path / "other", "single", **pairs), {"dev": dev})
    with pytest.raises(UserError, match="needs models with the same task. Received: model 2 with columns of texts 2"):
        Ensemble([first, other])


def test_taggers_of_sentences_and_of_documents_do_not_answer_together(tmp_path):
    dev = tmp_path / "dev.txt"
    dev.write_text("-DOCSTART- O\n\nthe O\ncat B-X\n")
    reading = {"task": "ner", "max_length": 16}
    folders = [write_served(tmp_path / rows, "tagging", rows=rows, **reading) for rows in ("sentence", "document")]
    with pytest.raises(UserError, match="same task. Received: model 2 with data.rows 'document' instead of 'sentence'"):
        Ensemble([FinetunedModel(folder, {"dev": str(dev)}) for folder in folders])


def test_models_that_read_and_answer_alike_are_averaged(first, folder, dev, tmp_path):
    """Whatever lies between the encoder and the head's outputs, and however the same tokenizer is written."""
    head = dataclasses.replace(HEADS["single"], bilstm_size=4)
    deeper = FinetunedModel(write_served(tmp_path / "deeper", "single", head, seed=1, **READING), {"dev": dev})
    spelled = changed(folder, tmp_path / "spelled", "tokenizer_config.json", with_fields(strip_accents=True))
    Ensemble([first, FinetunedModel(spelled, {"dev": dev})])
    logits = [model.evaluate.answers("dev")[0] for model in (first, deeper)]
    expected = np.mean(mean_of_softmax(logits).argmax(axis=1) == np.arange(30) % 3)
    assert Ensemble([first, deeper]).evaluate("dev")["accuracy"] == pytest.approx(expected)


def test_a_threshold_tuned_to_one_model_is_not_that_of_the_mean(tmp_path):
    """Otherwise the tuned scores would be at the threshold of whichever model is named first."""
    impossible = {"context": "the cat", "qas": [question("2", "who sat?", is_impossible=True)]}
    dev = write_squad(tmp_path / "dev.json", paragraph("the cat sat", ("1", "who sat?", "the cat")), impossible)
    reading = {"task": "squad_v2", "max_length": 32, "max_question_length": 8, "stride": 8, "unanswerable": True}

    def models():
        for seed, threshold in ((0, -100.0), (1, 100.0)):
            path = write_served(tmp_path / str(seed), "answering", seed=seed, **reading, null_threshold=threshold)
            yield FinetunedModel(path, {"dev": dev})

    one, other = models()
    assert Ensemble([one]).evaluate("dev")["tuned_thresh"] == -100.0
    both = Ensemble([one, other])
    assert both.evaluate("dev") == Ensemble([other, one]).evaluate("dev")
    assert not any("tuned" in name for name in (*both.evaluate("dev"), *both.problem.metric_names))


def test_only_what_a_tokenizer_uses_counts(first):
    """Google's folders and ours differ in settings that only another kind of tokenizer would use."""
    words, pieces = first.tokenizer.vocabulary, sentencepiece_vocabulary()
    plain, other = TokenizerSettings(), TokenizerSettings(quotes=False)
    assert plain.in_effect(words) == other.in_effect(words) and plain.in_effect(pieces) != other.in_effect(pieces)
    other = TokenizerSettings(split_chinese=False, strip_accents=False)
    assert plain.in_effect(words) != other.in_effect(words) and plain.in_effect(pieces) == other.in_effect(pieces)
