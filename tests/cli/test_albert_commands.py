"""ALBERT with a SentencePiece model, as a user works: learned, pretrained, fine-tuned, asked and exported."""

import json
import random

import numpy as np
import pytest
from command_line import output_of, sets
from finetuning import WORDS, reviews, write_questions
from small_runs import STEPS, TINY, assert_a_classifier_is_served, finetune, words_of_a_served_tagger

import keras_bert
from keras_bert.models.albert.encoder import AlbertEncoder
from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary

pytest.importorskip("sentencepiece")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Documents whose sentences use the words of the tasks below."""
    rng, path = random.Random(0), tmp_path_factory.mktemp("text") / "text.txt"
    documents = [
        "\n".join(" ".join(rng.choice(WORDS) for _ in range(rng.randint(4, 9))).capitalize() + "." for _ in range(5))
        for _ in range(60)
    ]
    path.write_text("\n\n".join(documents) + "\n", "utf-8")
    return str(path)


@pytest.fixture(scope="module")
def prepared(texts, tmp_path_factory):
    room = tmp_path_factory.mktemp("prepared")
    said = output_of(
        "vocab", "--input", texts, "--size", 120, "--kind", "sentencepiece", "--output", room / "spiece.model"
    )
    assert "pieces of a SentencePiece model" in said
    said = output_of("prepare", "--input", texts, "--vocab", room / "spiece.model", "--output", room / "prepared")
    assert "Next: python run.py pretrain --config albert_mini --data" in said
    return str(room / "prepared")


@pytest.fixture(scope="module")
def run(prepared, tmp_path_factory):
    """A run of the recipe for a few steps on the prepared text."""
    folder = str(tmp_path_factory.mktemp("run") / "run")
    size = len(keras_bert.Vocabulary.from_file(f"{prepared}/spiece.model"))
    settings = sets("model=albert-tiny", f"model.vocab_size={size}", "initialization=paper")
    place = ("--data", prepared, "--output", folder)
    output_of("pretrain", "--config", "albert_mini", *place, "--steps", 4, *settings, *TINY, *STEPS)
    return folder


def test_the_run_is_an_albert_with_its_own_objectives(run):
    """N-grams, sentence order, a SentencePiece model in the folder, and transformers' names."""
    with open(f"{run}/model/config.json", encoding="utf-8") as stream:
        fields = json.load(stream)
    assert fields["architectures"] == ["AlbertForPreTraining"] and fields["model_type"] == "albert"
    with open(f"{run}/model/tokenizer_config.json", encoding="utf-8") as stream:
        assert json.load(stream)["tokenizer_class"] == "AlbertTokenizer"
    with open(f"{run}/results.json", encoding="utf-8") as stream:
        assert np.isfinite(json.load(stream)["eval_sop_loss"])
    loaded = keras_bert.load(run)
    assert isinstance(loaded.encoder, AlbertEncoder)
    assert isinstance(loaded.tokenizer.vocabulary, SentencePieceVocabulary)
    assert not loaded.report.made_new and not loaded.report.unused


def test_fill_embed_inspect_convert(run, tmp_path):
    assert "[MASK] 1:" in output_of("fill", "--model", run, "good [MASK] w1")
    filled = keras_bert.load(run).fill(["good [MASK] w1"])[0].filled
    assert filled.startswith("good") and filled.endswith("w1") and "▁" not in filled
    (tmp_path / "texts.txt").write_text("good w1\nbad w2\n", "utf-8")
    output_of("embed", "--model", run, "--input", tmp_path / "texts.txt", "--output", tmp_path / "vectors.npz")
    assert "a SentencePiece model" in output_of("inspect", run)
    output_of("convert", "--to", "google", run, tmp_path / "google")
    ours, theirs = keras_bert.load(run), keras_bert.load(tmp_path / "google")
    np.testing.assert_array_equal(ours.encode(["good w1"]), theirs.encode(["good w1"]))
    assert ours.tokenizer.quotes and not theirs.tokenizer.quotes


@pytest.mark.slow
def test_a_classifier_is_trained_and_served_from_strings(run, tmp_path):
    assert_a_classifier_is_served(run, tmp_path)


@pytest.mark.slow
def test_answers_are_text_of_the_passage(run, tmp_path):
    """SentencePiece's offsets must leave out the space that begins an answer's first piece."""
    write_questions(tmp_path / "squad.json", 32)
    data, folder = tmp_path / "squad.json", tmp_path / "answers"
    rates = sets("optimizer.learning_rate=2e-3", "training.epochs=6", "input.max_question_length=8")
    finetune("squad", run, data, folder, *rates)
    output_of("predict", "--model", folder, "--input", data, "--output", tmp_path / "found")
    answers = json.loads((tmp_path / "found" / "predictions.json").read_text("utf-8"))
    passages = {str(number): text for number, (text, _) in enumerate(reviews(32))}
    for name, answer in answers.items():
        assert answer == answer.strip() and answer in passages[name]
    assert any(answers.values())


@pytest.mark.slow
def test_words_are_tagged_as_they_are_given_and_as_they_are_served(run, tmp_path):
    words = words_of_a_served_tagger(run, "good w1, bad w2.", tmp_path)
    assert words == ["good", "w1", ",", "bad", "w2", "."]


SENTENCEPIECE = ["--size", "50", "--kind", "sentencepiece"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--extend", "spiece.model"], "--extend: needs a WordPiece vocabulary"),
        ([*SENTENCEPIECE, "--unused", "3"], "--unused: goes with --kind wordpiece"),
        ([*SENTENCEPIECE, "--runner", "direct"], "--runner: goes with --kind wordpiece"),
        ([*SENTENCEPIECE, "--output", "vocab.txt"], "--output: needs a name that ends in .model"),
        (["--size", "400", "--kind", "bytes", "--runner", "direct"], "--runner: goes with --kind wordpiece"),
        (["--size", "400", "--kind", "bytes"], "--output: needs a name that ends in vocab.json for byte-level BPE"),
        (["--size", "400", "--output", "vocab.json"], "because vocab.json is for byte-level BPE. Received: vocab.json"),
    ],
)
def test_what_does_not_go_with_other_vocabularies_is_one_line(arguments, message, texts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = output_of("vocab", "--input", texts, "--output", "out.model", *arguments, status=2)
    assert message in told and "Traceback" not in told
