"""Pretraining before fine-tuning: on a task's own texts, and on pairs of texts."""

import json
import time

import numpy as np
import pytest
from corpus import write_corpus
from tiny import VOCABULARY as TINY
from tiny import tiny_config

import keras_bert
from keras_bert.api import preparation
from keras_bert.api.given_data import paths_in
from keras_bert.api.preparation import texts_of
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.training import strategy


def rows_of(*rows):
    lengths = [len(row) for row in rows]
    return TokenRows(np.concatenate(rows), np.cumsum([0, *lengths]), np.array(lengths), extra={})


def test_texts_are_what_stands_between_special_tokens_each_once():
    """If a pair were one text, a model would learn that its second text follows from the first; a text of several
    rows, such as a question of many windows, would count several times."""
    vocabulary = Vocabulary([*SPECIAL_TOKENS, "a", "cat", "##s", "sat"])
    _, _, cls, sep, _ = range(5)
    rows = rows_of([cls, 5, 6, 7, sep, 8, sep], [cls, 5, 6, 7, sep], [cls, sep], [cls, 8, 5, sep, 0, 0])
    assert texts_of(rows, vocabulary) == ["a cats", "sat", "sat a"]


PAIRS = {"kind": "pairs", "text": ["wiki/*"]}


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"from_scratch": True, "training": {"pretrain_minutes": 1}}, "from_scratch: needs weights that are kept"),
        ({"from_scratch": True, "prepare": PAIRS}, "from_scratch: needs weights that are kept, with prepare"),
        ({"initialization": {"attention": "mimetic"}, "prepare": PAIRS}, "initialization: needs the weights that"),
        ({"prepare": {"kind": "pairs"}}, r"prepare.text: needs documents to prepare the model on \(--prepare-text\)"),
        ({"prepare": {"text": ["wiki/*"]}}, r"prepare.text: needs prepare.kind \(--prepare\)"),
        ({"prepare": {"recipe": "demo"}}, r"prepare.recipe: needs prepare.kind \(--prepare\)"),
    ],
)
def test_what_would_be_lost_or_is_missing_is_refused(settings, message):
    """Weights would be trained for minutes and then initialized anew; text without `--prepare` would not be read."""
    with pytest.raises(UserError, match=message):
        FinetuneConfig.from_mapping({"task": "text", **settings})


def tiny_bert(folder, **changes):
    model = BertForPreTraining(tiny_config(max_position_embeddings=96, **changes))
    write_model_folder(str(folder / "model"), model, TINY, lower_case=True)
    return folder / "model"


ROWS = [{"text": "w1 w2", "other": "w2 w1", "label": index % 2} for index in range(8)]
TABLE = {"train": ROWS, "dev": ROWS, "label": "label", "steps": 1, "max_length": 32, "pretrain_minutes": 60}


@pytest.mark.parametrize(
    "attention, texts, changes, message",
    [
        ("bidirectional", "text", {}, "pairs: needs a task of two texts, .* Received: text. Leave it out."),
        ("causal", ["text", "other"], {}, "pairs: needs a model of masked tokens .* which predicts next tokens"),
        ("bidirectional", ["text", "other"], {"text": ["my corpus"]}, "No file matches 'my corpus'"),
        ("bidirectional", ["text", "other"], {"recipe": "match_pears"}, "match_pears: no such config"),
    ],
)
def test_what_cannot_be_prepared_is_refused_first(tmp_path, monkeypatch, attention, texts, changes, message):
    """After an hour on the task's texts it would be late, and a name without a file would be trained on as a text."""
    monkeypatch.setattr(preparation, "pretrain", None)
    output, model = tmp_path / "run", tiny_bert(tmp_path, attention=attention)
    settings = {**PAIRS, "text": [str(model)], **changes}
    with pytest.raises(UserError, match=message):
        keras_bert.finetune(model, prepare=settings, text=texts, output=output, **TABLE)


def test_pretraining_is_told_what_is_a_text_and_what_a_path(tmp_path, monkeypatch):
    """A text of the task may also be the name of a file, which must not be read instead."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w1 w2").write_text("something else")
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    given = []
    monkeypatch.setattr(preparation, "pretrain", lambda **arguments: given.append(arguments))
    recipe = FinetuneConfig.from_mapping(
        {
            "task": "text",
            "init": str(tiny_bert(tmp_path)),
            "data": {"train": "rows.jsonl", "dev": "rows.jsonl", "texts": ["text", "other"], "label": "label"},
            "input": {"max_length": 32},
            "training": {"pretrain_minutes": 1},
            "prepare": {"kind": "pairs", "text": ["w1 w2"]},
        }
    )
    assert preparation.prepared(recipe, "run", time.monotonic()).init == "run/pairs"
    of_task, of_pairs = given
    assert paths_in(of_task["data"]) is None and [*of_task["data"][0]] == ["text"]
    assert of_pairs["data.files"] == ["w1 w2"] and "data" not in of_pairs


def test_workers_meet_before_anything_is_computed(monkeypatch):
    """TensorFlow refuses to connect workers later: each would end in a traceback after tokenizing the texts."""
    done = []

    def opened(recipe):
        done.append("opened")
        raise UserError("enough")

    monkeypatch.setattr(strategy, "make_strategy", lambda *of: done.append("met"))
    monkeypatch.setattr(preparation, "_opened", opened)
    recipe = FinetuneConfig.from_mapping({"task": "text", "init": "bert", "training": {"pretrain_minutes": 1}})
    with pytest.raises(UserError, match="enough"):
        preparation.prepared(recipe, "run", time.monotonic())
    assert done == ["met", "opened"]


@pytest.mark.parametrize("minutes_ago, left", [(10, 20.0), (40, 0.0)])
def test_the_time_limit_of_the_command_holds_for_preparation_too(tmp_path, monkeypatch, minutes_ago, left):
    """Otherwise a job with a fixed slot would be killed amid its preparation."""
    given = []
    monkeypatch.setattr(preparation, "pretrain", lambda **arguments: given.append(arguments["training.max_minutes"]))
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    data = {"train": str(tmp_path / "rows.jsonl"), "texts": ["text", "other"], "label": "label"}
    training = {"pretrain_minutes": 60, "max_minutes": 30}
    values = {"task": "text", "init": str(tiny_bert(tmp_path)), "data": data, "training": training}
    started_at = time.monotonic() - 60 * minutes_ago
    preparation.prepared(FinetuneConfig.from_mapping(values), str(tmp_path / "run"), started_at)
    assert given == [pytest.approx(left, abs=1.0)] and given[0] > 0  # 0 means no limit.


@pytest.mark.parametrize("text, received", [("w1 w2", 1), ("", 0)])
def test_too_few_texts_of_a_task_are_refused_with_a_remedy_in_reach(tmp_path, text, received):
    """A task's recipe cannot set a smaller batch of pretraining, or blank lines between documents."""
    rows = [{"text": text, "label": index % 2} for index in range(8)]
    message = rf"training texts to fill a batch .* Received: {received}\. Leave it out."
    with pytest.raises(UserError, match=message):
        keras_bert.finetune(tiny_bert(tmp_path), output=tmp_path / "run", text="text", **{**TABLE, "train": rows})


def letters_bert(folder):
    """Writes a model of letters to `folder`/model and a text for it to corpus.txt; returns the text's lines."""
    with open(write_corpus(folder / "corpus.txt", 60), encoding="utf-8") as stream:
        texts = [line.strip() for line in stream if line.strip()]
    letters = [chr(code) for code in range(33, 127)]
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters)])
    config = tiny_config(vocab_size=len(vocabulary), max_position_embeddings=128)
    write_model_folder(str(folder / "model"), BertForPreTraining(config), vocabulary, lower_case=True)
    return texts


@pytest.mark.slow
def test_fine_tuning_starts_from_what_the_texts_have_taught(tmp_path):
    """If it started from MODEL as it was, the minutes would be spent for nothing."""
    texts = letters_bert(tmp_path)
    rows = [{"text": text, "label": index % 2} for index, text in enumerate(texts)]
    data = {"train": rows, "dev": rows[:8], "text": "text", "label": "label", "max_length": 32}
    settings = {**data, "steps": 1, "pretrain_minutes": 0.15, "learning_rate": 1e-9, "output": tmp_path / "run"}
    run = keras_bert.finetune(tmp_path / "model", **settings)
    pretrained = keras_bert.Run(tmp_path / "run" / "task_text")
    assert pretrained.results["steps"] > 1
    names = ("model", "run", "run/task_text")
    short = [text[:20] for text in texts[:4]]
    before, after, between = (keras_bert.load(tmp_path / name).encode(short) for name in names)
    np.testing.assert_allclose(after, between, atol=1e-6)
    assert np.abs(between - before).max() > 1e-5
    assert keras_bert.finetune(tmp_path / "model", **settings).results == run.results


RECIPE = """
objective: {tokens: masked, pair: related, match: true}
initialization: {replaces: true, position_embeddings: sinusoidal, attention: mimetic}
masking: {unit: word}
phases: [{sequence_length: 128, batch_size: 4, max_predictions_per_seq: 8}]
optimizer: {learning_rate: 1.0e-3, warmup_steps: 0}
training: {steps: 2, jit_compile: false, evaluate_every: 2, checkpoint_every: 2, evaluation_examples: 8}
"""


@pytest.mark.slow
def test_all_seeds_start_from_the_model_that_matched_words_and_say_so(tmp_path):
    """A run that started from MODEL itself, or did not say from what, would be compared as if it were another."""
    texts = letters_bert(tmp_path)
    (tmp_path / "match.yaml").write_text(RECIPE)
    rows = [{"one": text, "other": texts[index - 1], "label": index % 2} for index, text in enumerate(texts)]
    data = {"train": rows, "dev": rows[:8], "text": ["one", "other"], "label": "label", "max_length": 64}
    preparation = {"kind": "pairs", "text": [str(tmp_path / "corpus.txt")], "recipe": str(tmp_path / "match.yaml")}
    settings = {**data, "prepare": preparation, "output": tmp_path / "run", "seeds": [1, 2]}
    run = keras_bert.finetune(tmp_path / "model", steps=1, learning_rate=1e-9, **settings)
    assert "eval_match_loss" in keras_bert.Run(tmp_path / "run" / "pairs").results
    short = [text[:20] for text in texts[:4]]
    names = ("model", "run", "run/pairs", "run/seed-1", "run/seed-2")
    before, *after, between, one, other = (keras_bert.load(tmp_path / name).encode(short) for name in names)
    np.testing.assert_allclose([*after, one, other], [between] * 3, atol=1e-6)
    assert np.abs(between - before).max() > 1e-3
    assert run.results["prepared"] == "pairs" and run.results["overlap"]["dev"]
    card = (tmp_path / "run" / "model" / "README.md").read_text(encoding="utf-8")
    assert "starting from the weights of `model` after matching the words of pairs of texts" in card
    again = keras_bert.finetune(tmp_path / "model", steps=1, learning_rate=1e-9, **settings)
    assert again.results == run.results
