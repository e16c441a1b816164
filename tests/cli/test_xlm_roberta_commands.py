"""XLM-RoBERTa as a user trains it: vocabulary learned, pretrained, pretrained further, fine-tuned and asked."""

import json

import numpy as np
import pytest
from command_line import output_of, sets
from finetuning import reviews
from small_runs import STEPS, TINY, assert_a_classifier_is_served, words_of_a_served_tagger

import keras_bert
from keras_bert.models.roberta.kind import XlmRobertaConfig
from keras_bert.text.fairseq_vocabulary import FairseqVocabulary

pytest.importorskip("sentencepiece")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Documents whose sentences use the words of the tasks below."""
    path = tmp_path_factory.mktemp("text") / "text.txt"
    sentences = [text.capitalize() + ", É." for text, _ in reviews(300)]
    path.write_text("\n\n".join("\n".join(sentences[row : row + 5]) for row in range(0, 300, 5)) + "\n", "utf-8")
    return str(path)


@pytest.fixture(scope="module")
def run(texts, tmp_path_factory):
    """A run of the RoBERTa recipe for a few steps that learns its vocabulary."""
    folder = str(tmp_path_factory.mktemp("run") / "run")
    settings = sets(
        "model.model_type=xlm-roberta",
        "vocabulary.kind=xlm-roberta",
        "model.vocab_size=120",
        "model.num_hidden_layers=2",
        "initialization=paper",
    )
    place = ("--data", texts, "--output", folder)
    output_of("pretrain", "--config", "roberta_mini", *place, "--steps", 4, *settings, *TINY, *STEPS)
    return folder


def test_the_run_is_an_xlm_roberta_with_its_vocabulary(run):
    with open(f"{run}/model/config.json", encoding="utf-8") as stream:
        fields = json.load(stream)
    assert fields["architectures"] == ["XLMRobertaForMaskedLM"] and fields["model_type"] == "xlm-roberta"
    assert fields["pad_token_id"] == 1 and fields["max_position_embeddings"] == 34
    with open(f"{run}/model/tokenizer_config.json", encoding="utf-8") as stream:
        assert json.load(stream)["tokenizer_class"] == "XLMRobertaTokenizer"
    loaded = keras_bert.load(run)
    vocabulary = loaded.tokenizer.vocabulary
    assert type(loaded.config) is XlmRobertaConfig and isinstance(vocabulary, FairseqVocabulary)
    assert loaded.config.vocab_size == len(vocabulary) and "É" in "".join(vocabulary.tokens)
    assert not loaded.report.made_new


@pytest.mark.slow
def test_its_training_goes_on_from_its_weights_and_vocabulary(run, texts, tmp_path):
    folder = tmp_path / "further"
    output_of(
        "pretrain", "--config", "continue", "--init", run, "--data", texts, "--output", folder, "--steps", 2, *STEPS
    )
    before, after = keras_bert.load(run), keras_bert.load(folder)
    assert after.tokenizer.vocabulary.fingerprint == before.tokenizer.vocabulary.fingerprint
    difference = np.abs(after.encode(["good w1"]) - before.encode(["good w1"])).max()
    assert 0 < difference < 0.1


def test_vocab_prepare_embed_inspect(run, texts, tmp_path):
    file = tmp_path / "sentencepiece.bpe.model"
    said = output_of("vocab", "--input", texts, "--size", 120, "--kind", "xlm-roberta", "--output", file)
    assert "pieces of a SentencePiece model like XLM-RoBERTa's" in said
    said = output_of("prepare", "--input", texts, "--vocab", file, "--output", tmp_path / "prepared")
    assert (tmp_path / "prepared" / "sentencepiece.bpe.model").read_bytes() == file.read_bytes()
    (tmp_path / "texts.txt").write_text("good w1\nbad w2\n", "utf-8")
    output_of("embed", "--model", run, "--input", tmp_path / "texts.txt", "--output", tmp_path / "vectors.npz")
    assert "texts are normalized as the model's file says" in output_of("inspect", run)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            ["--kind", "xlm-roberta", "--output", "v.model"],
            "--output: needs a name that ends in sentencepiece.bpe.model",
        ),
        (
            ["--kind", "sentencepiece", "--output", "sentencepiece.bpe.model"],
            "needs another name, because sentencepiece",
        ),
        (["--output", "sentencepiece.bpe.model"], "Give vocab.txt, or --kind xlm-roberta"),
    ],
)
def test_the_name_of_the_file_tells_the_kind(arguments, message, texts, tmp_path, monkeypatch):
    """The name decides when the file is written, as it does when it is read."""
    monkeypatch.chdir(tmp_path)
    told = output_of("vocab", "--input", texts, "--size", 50, *arguments, status=2)
    assert message in told and "Traceback" not in told


@pytest.mark.parametrize("kind, title", [("wordpiece", "a WordPiece vocabulary"), ("sentencepiece", "a SentencePiece")])
def test_a_vocabulary_with_another_padding_is_refused_in_one_line(kind, title, texts, tmp_path):
    """config.json would name the vocabulary's padding, and transformers would count positions from it."""
    settings = sets(f"vocabulary.kind={kind}", "model.vocab_size=120", "model.hidden_size=32")
    place = ("--data", texts, "--output", tmp_path / "run")
    told = output_of("pretrain", "--config", "roberta_mini", *place, "--steps", 1, *settings, *STEPS, status=2)
    assert "model.pad_token_id: needs 0, the id of " in told and f"in {title}" in told and "Received: 1" in told
    assert "Traceback" not in told


@pytest.mark.slow
def test_a_classifier_is_trained_and_served_from_strings(run, tmp_path):
    assert_a_classifier_is_served(run, tmp_path)


@pytest.mark.slow
def test_words_are_tagged_as_they_are_given_and_as_they_are_served(run, tmp_path):
    words = words_of_a_served_tagger(run, "good w1 bad w2", tmp_path)
    assert words == ["good", "w1", "bad", "w2"]
