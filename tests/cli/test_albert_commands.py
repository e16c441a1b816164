"""ALBERT with a SentencePiece model, as a user works: learned, pretrained, fine-tuned, asked and exported."""

import json
import random
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from command_line import output_of, sets
from finetuning import WORDS, reviews
from squad_file import paragraph, write_squad

import keras_bert
from keras_bert.models.albert.encoder import AlbertEncoder
from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary

pytest.importorskip("sentencepiece")

TELLING = WORDS[:6]
SMALL = sets("input.max_length=32", "training.batch_size=8", "training.jit_compile=false")


def finetune(task, init, data, folder, *arguments):
    files = ("--train", data, "--dev", data, "--output", folder)
    output_of("finetune", "--task", task, "--init", init, *files, *SMALL, *arguments)


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
    settings = sets(
        "model=albert-tiny",
        f"model.vocab_size={size}",
        "model.hidden_size=32",
        "model.num_attention_heads=2",
        "model.intermediate_size=64",
        "model.max_position_embeddings=32",
        "phases=[{share: 1.0, sequence_length: 16, batch_size: 8, max_predictions_per_seq: 4}]",
        "examples=[]",
        "initialization=paper",
        "optimizer.warmup_steps=0",
        "training.minutes=0",
        "training.jit_compile=false",
        "training.evaluation_examples=16",
    )
    output_of("pretrain", "--config", "albert_mini", "--data", prepared, "--output", folder, "--steps", 4, *settings)
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
    rows = [json.dumps({"text": text, "label": label}) for text, label in reviews(48)]
    (tmp_path / "train.jsonl").write_text("\n".join(rows) + "\n", "utf-8")
    data = tmp_path / "train.jsonl"
    folder = tmp_path / "classifier"
    finetune("text", run, data, folder, *sets("training.epochs=1"))
    output_of("export", "--model", folder, "--output", tmp_path / "served")
    texts = [text for text, _ in reviews(4)]
    expected = [answer.probabilities for answer in keras_bert.load(folder).predict(texts)]
    # In a process that knows nothing of keras_bert: the SentencePiece model is in the export.
    program = (
        "import json, sys, tensorflow as tf, tensorflow_text\n"
        "served = tf.saved_model.load(sys.argv[1]).signatures['serving_default']\n"
        "print(json.dumps(served(text=tf.constant(json.loads(sys.argv[2])))['probabilities'].numpy().tolist()))\n"
    )
    arguments = [sys.executable, "-c", program, str(tmp_path / "served" / "1"), json.dumps(texts)]
    told = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    received = json.loads(told.splitlines()[-1])
    labels = sorted(expected[0])
    np.testing.assert_allclose(received, [[row[label] for label in labels] for row in expected], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_answers_are_text_of_the_passage(run, tmp_path):
    """SentencePiece's offsets must leave out the space that begins an answer's first piece."""
    found = []
    for number, (text, _) in enumerate(reviews(32)):
        answer = next(word for word in text.split() if word in TELLING)
        found.append(paragraph(text, (str(number), "w1 w2", (answer, text.index(answer)))))
    write_squad(tmp_path / "squad.json", *found)
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
    sentences = [text.split() for text, _ in reviews(32)]
    lines = ["\n".join(f"{word} {'B-PER' if word in TELLING else 'O'}" for word in words) for words in sentences]
    (tmp_path / "ner.txt").write_text("\n\n".join(lines) + "\n", "utf-8")
    data, folder = tmp_path / "ner.txt", tmp_path / "tagger"
    finetune("ner", run, data, folder, *sets("training.epochs=1"))
    output_of("export", "--model", folder, "--output", tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served" / "1")).signatures["serving_default"]
    text = "good w1, bad w2."
    outputs = {name: output.numpy() for name, output in served(text=tf.constant([text])).items()}
    words = [text[start:end] for start, end in zip(outputs["starts"][0], outputs["ends"][0])]
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
