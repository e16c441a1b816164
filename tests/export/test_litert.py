"""Exports for LiteRT: what the interpreter answers, against the SavedModel's signature and the model itself."""

import dataclasses
import os
import re
import shutil
import sys

import numpy as np
import pytest
from command_line import give
from pages import blocks
from served import ALBERT, CAUSAL, HEADS, KINDS, ROBERTA, VOCABULARY, write_served
from shortened import shortened
from tiny import random_weights, without_dropout, write_random

import keras_bert
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.core.errors import UserError
from keras_bert.export import portable
from keras_bert.export.litert import LITERT, QUANTIZATIONS, write_litert
from keras_bert.export.serving_function import serving_function
from keras_bert.models.elmo.kind import ElmoConfig
from keras_bert.models.recurrent.kind import RecurrentConfig
from keras_bert.models.xlnet.kind import XlnetConfig
from keras_bert.tasks.classification.head import ClassificationConfig, NextSentenceConfig
from keras_bert.tasks.classification.network import BertForSequenceClassification
from keras_bert.tasks.few_shot.task import FewShotConfig
from keras_bert.tasks.kind import kind_of_head
from keras_bert.tasks.sentence_vectors.task import SentenceVectorsConfig
from keras_bert.text.standalone_byte_tokenizer import StandaloneByteTokenizer
from keras_bert.text.standalone_tokenizer import StandaloneTokenizer
from tools.litert_model import LiteRTModel

# Absolute, for outputs of magnitude 1. Weights in 8 bits are off by up to 1/254 of the largest in their row.
TOLERANCE = {"none": 1e-5, "float16": 5e-3, "int8": 5e-2}

WITH_CRF = ("crf", "segment")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """`exported(kind, quantization)`: the folder, made once."""
    made = {}

    def make(kind, quantization="none"):
        if (kind, quantization) not in made:
            path = tmp_path_factory.mktemp(kind)
            bert = keras_bert.load(write_served(path / "model", kind))
            write_litert(path / "export", bert, quantization, top_k=3)
            made[kind, quantization] = str(path / "export")
        return made[kind, quantization]

    return make


def tokens(shape, seed=0):
    """Rows of ids with padding at the end of the first and a single token in the last."""
    mask = np.ones(shape, "int32")
    mask[0, ..., shape[-1] // 2 :] = 0
    if shape[0] > 1:
        mask[-1, ..., 1:] = 0
    ids = np.random.default_rng(seed).integers(5, len(VOCABULARY), shape).astype("int32") * mask
    types = (np.arange(shape[-1]) > 2).astype("int32") * mask
    return {"input_word_ids": ids, "input_mask": mask, "input_type_ids": types}


def shapes(kind):
    """Several of each kind, the second longer: all dimensions can be resized, except that an LSTM takes one row."""
    if kind == "choice":
        return [(1, 2, 7), (3, 4, 12)]
    return [(1, 8), (1, 24)] if kind == "features" else [(1, 8), (3, 24), (2, 40)]


def cases():
    """Every kind, and two of them in every quantization, which concerns the weights and not the head."""
    for kind in sorted(set(KINDS) - {*WITH_CRF, "masked_lm"}):
        for quantization in QUANTIZATIONS if kind in ("single", "encoder") else ["none"]:
            is_quick = kind in ("encoder", "pair", "single")
            yield pytest.param(kind, quantization, marks=() if is_quick else pytest.mark.slow)


@pytest.mark.parametrize("kind, quantization", cases())
def test_it_answers_what_the_saved_model_answers(served, exported, kind, quantization):
    """Every output but strings, at every shape; padding, which LiteRT computes, must not change an answer."""
    model, (_, function) = LiteRTModel(exported(kind, quantization)), served(kind)
    for shape in shapes(kind):
        inputs = tokens(shape)
        expected = function.answer("tokens", *inputs.values())
        received = model(inputs)
        assert set(received) == {name for name, value in expected.items() if value.dtype != object}
        for name, values in received.items():
            other, place = expected[name], ()
            if values.ndim > 1:  # The SavedModel drops columns of padding alone, and rounds their number up.
                place = (slice(None), slice(min(values.shape[1], other.shape[1])))
            if name != "choice":
                np.testing.assert_allclose(values[place], other[place], rtol=0, atol=TOLERANCE[quantization])


def _recurrent(name):
    """(config, head) of a model with LSTMs or GRUs."""
    sizes = {"vocab_size": len(VOCABULARY), "hidden_size": 16, "num_hidden_layers": 2, "hidden_dropout_prob": 0.0}
    if name == "elmo":
        return ElmoConfig(**sizes), HEADS["single"]
    if name == "bilstm":
        return without_dropout(vocab_size=len(VOCABULARY)), dataclasses.replace(HEADS["tagging"], bilstm_size=4)
    return RecurrentConfig(**sizes, intermediate_size=32, max_position_embeddings=40, block=name), HEADS["single"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["elmo", "bilstm", "gru", "lstm"])
def test_what_has_a_recurrence_takes_one_row_at_a_time(tmp_path, name, capfd):
    """On two, the interpreter would fail with a line about a runtime's node, and the converter would fill stderr."""
    config, head = _recurrent(name)
    model = kind_of_head(head).make_model(config, head)
    bert = keras_bert.load(write_random(tmp_path / "model", model, VOCABULARY, head=head))
    write_litert(tmp_path / "export", bert)
    assert "error" not in capfd.readouterr().err
    exported = LiteRTModel(tmp_path / "export")
    for length in (8, 24):
        inputs = tokens((1, length))
        logits = np.asarray(bert.model(inputs)["logits"])
        received = exported(inputs)["logits"]
        there = inputs["input_mask"][0] > 0 if received.ndim == 3 else slice(None)
        np.testing.assert_allclose(received[:, there], logits[:, there], rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match=r"needs the shape \[1, -1\] \(-1: any\)\. Received: \[2, 8\]"):
        exported(tokens((2, 8)))


@pytest.mark.parametrize("name", ["vectors", pytest.param("few-shot", marks=pytest.mark.slow), "xlnet"])
def test_what_has_no_recurrence_takes_several_rows(tmp_path, name):
    """These used to take one row at a time too, because the converter could not lower one of their axes."""
    heads = {"vectors": SentenceVectorsConfig(("score",)), "few-shot": FewShotConfig(("no", "yes"))}
    if name == "xlnet":
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
        config, head = XlnetConfig(len(VOCABULARY), **sizes, hidden_dropout_prob=0.0), HEADS["single"]
        write_random(tmp_path / "model", kind_of_head(head).make_model(config, head), VOCABULARY, head=head)
    else:
        write_served(tmp_path / "model", name, heads[name])
    bert = keras_bert.load(str(tmp_path / "model"))
    write_litert(tmp_path / "export", bert)
    exported, function = LiteRTModel(tmp_path / "export"), serving_function(bert)
    for shape in ((1, 8), (3, 24)):
        inputs = tokens(shape)
        expected = function.answer("tokens", *inputs.values())
        for output, values in exported(inputs).items():
            np.testing.assert_allclose(values, expected[output], rtol=0, atol=1e-5)


@pytest.mark.parametrize("quantization", shortened(QUANTIZATIONS))
def test_a_masked_lm_answers_at_positions(served, exported, quantization):
    bert, _ = served("masked_lm")
    inputs = tokens((3, 9))
    positions = np.array([[1, 3], [8, 2], [0, 0]], "int32")
    received = LiteRTModel(exported("masked_lm", quantization))({**inputs, "masked_lm_positions": positions})
    logits = np.asarray(bert.model({**inputs, "masked_lm_positions": positions})["mlm_logits"])
    np.testing.assert_allclose(received["logits"], logits, rtol=0, atol=TOLERANCE[quantization])
    best = np.argsort(-received["logits"], axis=-1)[..., :3]
    np.testing.assert_array_equal(received["ids"], best)
    shares = np.exp(received["logits"]) / np.exp(received["logits"]).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(received["scores"], np.take_along_axis(shares, best, axis=-1), rtol=1e-4)


def test_a_left_to_right_model_answers_with_what_may_follow(served, exported):
    """It used to be silently exported as an encoder."""
    _, function = served(CAUSAL)
    inputs = tokens((3, 9))
    received = LiteRTModel(exported(CAUSAL))(inputs)
    expected = function.answer("tokens", *(inputs[spec.name] for spec in function.inputs["tokens"]))
    assert received.keys() == {"ids", "scores"}
    np.testing.assert_array_equal(received["ids"], expected["ids"][:, :3])
    np.testing.assert_allclose(received["scores"], expected["scores"][:, :3], rtol=0, atol=1e-5)


def test_a_row_that_has_no_embedding_is_answered_with_nan(exported):
    """LiteRT would fail on an index out of range, and the other rows would be lost."""
    model, inputs = LiteRTModel(exported("single")), tokens((4, 9))
    expected = model(inputs)["logits"]
    inputs["input_word_ids"][1, 2], inputs["input_type_ids"][2, 1] = 10**6, -1
    received = model(inputs)["logits"]
    assert np.isnan(received[1:3]).all()
    np.testing.assert_allclose(received[[0, 3]], expected[[0, 3]], atol=1e-6)
    long = tokens((2, 60))  # 40 positions; the second row has a single token.
    long["input_mask"][0] = 1
    assert np.isnan(model(long)["logits"]).all(axis=1).tolist() == [True, False]


def test_int8_is_close_on_a_model_that_looks_trained(tmp_path):
    """Embeddings whose rows differ in size by a hundred, as those of rare and frequent pieces do: one scale for the
    table would round the small ones away."""
    model = BertForSequenceClassification(without_dropout(vocab_size=len(VOCABULARY), hidden_size=64), 3)
    random_weights(model, scale=0.1)
    table = model.encoder.embeddings.word_embeddings
    table.assign(table.numpy() * np.geomspace(0.03, 3, len(VOCABULARY))[:, np.newaxis])
    head = ClassificationConfig(("a", "b", "c"))
    write_model_folder(str(tmp_path / "model"), model, VOCABULARY, lower_case=True, head=head)
    bert = keras_bert.load(str(tmp_path / "model"))
    sizes = {name: write_litert(tmp_path / name, bert, name) for name in ("none", "int8")}
    assert sizes["int8"] < 0.5 * sizes["none"]
    inputs = tokens((16, 20))
    inputs["input_word_ids"][:8] %= 30  # Half of the rows have small embeddings alone.
    exact, rounded = (LiteRTModel(tmp_path / name)(inputs)["logits"] for name in ("none", "int8"))
    assert np.abs(exact - rounded).max() < 0.05 * exact.std()


def test_the_folder_describes_itself(exported):
    """Its tokenizer, labels and card are enough: the card's tables name what the interpreter takes and gives."""
    folder = exported("single")
    with open(f"{folder}/labels.txt", encoding="utf-8") as stream:
        assert tuple(stream.read().splitlines()) == HEADS["single"].labels
    tokenizer = StandaloneTokenizer.from_folder(folder)
    outputs = LiteRTModel(folder)(tokenizer.encode("The cat sat.", max_length=20))
    with open(f"{folder}/README.md", encoding="utf-8") as stream:
        card = stream.read()
    for name in ("input_word_ids", "input_mask", "input_type_ids", *outputs):
        assert f"| `{name}` |" in card
    assert "float32; 0." in card and "| `logits` | float32 | [batch, 3] |" in card


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, outputs",
    [
        ("single", ["logits", "probabilities"]),
        ("pair", ["logits"]),
        ("tagging", ["logits", "scores"]),
        ("answering", ["start_logits", "end_logits"]),
    ],
)
def test_a_roberta_answers_what_its_saved_model_answers(tmp_path, kind, outputs):
    """From the text: the folder's own tokenizer makes the inputs, with two </s> between the texts of a pair."""
    reading = {"pair": True} if kind == "pair" else {}
    bert = keras_bert.load(write_served(tmp_path / "model", ROBERTA, HEADS[kind], **reading))
    write_litert(tmp_path / "edge", bert)
    function, model = serving_function(bert), LiteRTModel(tmp_path / "edge")
    tokenizer = StandaloneByteTokenizer.from_folder(str(tmp_path / "edge"))
    for texts in (("The cat's 猫 🙂", "the\u2028cat  sat\0."), ("", "a"), ("the cat " * 30, "cat")):
        is_pair = kind in ("pair", "answering")
        rows = tokenizer.encode(texts[0], texts[1] if is_pair else None, bert.folder.reading.max_length)
        received, expected = model(rows), function.answer("tokens", *(np.array(row, "int32") for row in rows.values()))
        length = len(rows["input_word_ids"][0])
        for name in outputs:
            values, others = (answers[name][:, :length] for answers in (received, expected))
            np.testing.assert_allclose(values, others, rtol=0, atol=TOLERANCE["none"])
        if kind in ("single", "pair"):
            of_text = function(*([text.encode()] for text in texts[: 1 + is_pair]))
            np.testing.assert_allclose(received["logits"], of_text["logits"], rtol=0, atol=TOLERANCE["none"])


def test_a_roberta_takes_the_place_of_an_earlier_export(exported, tmp_path):
    """Files of the other tokenizer must go, and files that are no export's must stay."""
    shutil.copytree(exported("single"), tmp_path / "edge")
    bert = keras_bert.load(write_served(tmp_path / "model", ROBERTA))
    (tmp_path / "edge" / "merges.txt").write_text("mine")
    with pytest.raises(UserError, match="an earlier export. Received: a part of an export"):
        write_litert(tmp_path / "edge", bert)
    (tmp_path / "edge" / "merges.txt").unlink()
    write_litert(tmp_path / "edge", bert)
    write_litert(tmp_path / "edge", bert)
    assert set(os.listdir(tmp_path / "edge")) == {
        *("model.tflite", "vocab.json", "merges.txt", "labels.txt", "tokenizer.py", "character_classes.npz"),
        *("tokenizer_config.json", "config.json", "README.md"),
    }


def test_a_vocabulary_without_a_plain_tokenizer_is_refused(tmp_path):
    bert = keras_bert.load(write_served(tmp_path / "model", ALBERT))
    with pytest.raises(UserError, match="a WordPiece vocabulary or a byte-level BPE vocabulary. Received: a Sent"):
        write_litert(tmp_path / "edge", bert)
    assert not (tmp_path / "edge").exists()


@pytest.mark.parametrize("label", ["b\nc", "b\rc"])
def test_labels_that_are_not_one_line_each_are_refused(tmp_path, label):
    """A label with a line break would shift every label after it for whoever reads labels.txt."""
    head = dataclasses.replace(HEADS["single"], labels=("a", label, "d"))
    bert = keras_bert.load(write_served(tmp_path / "model", "single", head))
    with pytest.raises(UserError, match="needs labels without line breaks, for labels.txt. Received: 'b") as refused:
        write_litert(tmp_path / "export", bert)
    assert not (tmp_path / "export").exists() and "\n" not in str(refused.value)


def run_in(folder, example, monkeypatch):
    """The names defined after an example has run in a folder with its own tokenizer.py."""
    names = {}
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "tokenizer", raising=False)  # Another folder's.
    exec(compile(example, "example", "exec"), names)
    return names


def test_the_example_for_a_next_sentence_is_a_pair(tmp_path):
    """It used to have one text, for which the answer means nothing."""
    bert = keras_bert.load(write_served(tmp_path / "model", "next_sentence", head=NextSentenceConfig()))
    card = portable._card(bert, LITERT, portable.portable_signature(bert, LITERT), "float32", 1, bert.head.labels)
    assert 'encode("a text", "the text it is paired with", max_length=40)' in card


@pytest.mark.parametrize("kind", ["single", "pair", "choice", "masked_lm", ROBERTA])
def test_the_example_of_the_card_runs(exported, kind, monkeypatch):
    with open(f"{exported(kind)}/README.md", encoding="utf-8") as stream:
        example = stream.read().partition("```python\n")[2].partition("```")[0]
    names = run_in(exported(kind), example, monkeypatch)
    assert all(np.isfinite(values).all() for values in names["outputs"].values())


def test_another_folder_is_not_overwritten(served, tmp_path):
    bert, _ = served("single")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="new or empty folder"):
        write_litert(tmp_path, bert)
    write_litert(tmp_path / "export", bert)
    write_litert(tmp_path / "export", bert, "int8")  # An earlier export is.
    with pytest.raises(UserError, match=r"model\.tflite"):
        LiteRTModel(tmp_path)


@pytest.mark.parametrize("held", [["model.tflite"], ["model.tflite", "notes.txt"], ["export"]])
def test_files_that_no_export_wrote_are_kept(served, tmp_path, held):
    """The folder used to be replaced with all that stood beside a model.tflite in it."""
    bert, _ = served("single")
    if held == ["export"]:
        write_litert(tmp_path, bert)
        held = ["notes.txt"]
    for name in held:
        (tmp_path / name).write_text("mine")
    with pytest.raises(
        UserError, match=f"earlier export. Received: {'notes.txt' if 'notes.txt' in held else 'a part'}"
    ):
        write_litert(tmp_path, bert)
    assert all((tmp_path / name).read_text() == "mine" for name in held)


@pytest.mark.parametrize("kind", WITH_CRF)
def test_a_crf_is_refused(tmp_path, kind):
    bert = keras_bert.load(write_served(tmp_path / "model", kind))
    with pytest.raises(UserError, match="needs a head without a CRF.*Export a SavedModel, or the --encoder"):
        write_litert(tmp_path / "export", bert)
    assert write_litert(tmp_path / "export", bert, encoder_only=True)


def test_an_unknown_quantization_is_refused(served, tmp_path):
    """It used to be a bare KeyError."""
    with pytest.raises(UserError, match="quantization: needs one of none, float16, int8. Received: 'int4'"):
        write_litert(tmp_path / "export", served("single")[0], "int4")


def test_ops_that_litert_lacks_are_refused_in_one_line():
    import tensorflow as tf

    from keras_bert.export.litert import convert
    from keras_bert.export.signature import Signature

    signature = Signature(
        lambda text: {"upper": tf.strings.length(tf.strings.upper(tf.strings.as_string(text)))},
        (tf.TensorSpec([None, None], tf.int32, name="input_word_ids"),),
    )
    with pytest.raises(UserError, match="needs a model of LiteRT's own ops") as refused:
        convert(signature, "none", "model")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("language", ["kotlin", "swift"])
def test_the_examples_for_phones_use_the_names_of_the_signature(exported, language):
    """They cannot be compiled here, and a wrong name would fail only on a phone."""
    (example,) = [content for found, content, _ in blocks("docs/edge.md") if found == language]
    quoted = set(re.findall(r'"(\w+)"', example))
    inputs = {"input_word_ids", "input_mask", "input_type_ids"}
    outputs = set(LiteRTModel(exported("single"))(tokens((1, 4))))
    assert inputs < quoted and quoted & outputs
    assert quoted <= inputs | outputs | {"tokens"}


def test_the_example_for_python_runs(exported, monkeypatch):
    (example,) = [content for language, content, _ in blocks("docs/edge.md") if language == "python"]
    names = run_in(exported("single"), example.replace("max_length=128", "max_length=40"), monkeypatch)
    assert names["label"] in HEADS["single"].labels


def test_the_command_writes_it_and_refuses_options_of_the_other_format(tmp_path):
    model = write_served(tmp_path / "model", "regression")
    command = ["export", "--model", model, "--output", str(tmp_path / "edge")]
    written = give(*command, "--format", "litert", "--quantize", "int8")
    assert "MB" in written.output
    assert not (tmp_path / "edge" / "labels.txt").exists()  # Of a number.
    assert "labels.txt" not in (tmp_path / "edge" / "README.md").read_text()
    assert LiteRTModel(tmp_path / "edge")(tokens((1, 4)))["score"].shape == (1,)
    for options in (["--quantize", "int8"], ["--format", "litert", "--jit"]):
        refused = give(*command, *options, status=2)
        assert "needs --format" in refused.output
