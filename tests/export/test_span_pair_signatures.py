"""The signatures of a model that classifies two spans, against the model on rows and a plain computation."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf
from hostile_texts import HOSTILE
from numpy_encoder_inputs import pair_inputs
from served import VOCABULARY, ReloadedExport, write_served

import keras_bert
from keras_bert.export.saved_model import warm_up_values, write_version
from keras_bert.export.serving_function import serving_function
from keras_bert.tasks.span_pairs.task import SpanPairConfig

HERE = pathlib.Path(__file__).parent
LABELS = ("False", "True")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    path = write_served(tmp_path_factory.mktemp("wic") / "model", "wic", SpanPairConfig(LABELS), pair=True)
    bert = keras_bert.load(path)
    return bert, serving_function(bert)


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    head = SpanPairConfig(LABELS, reads_cls=False)
    bert = keras_bert.load(write_served(tmp_path_factory.mktemp("wsc") / "model", "wsc", head))
    return bert, serving_function(bert)


def plain_logits(bert, inputs, spans):
    """Attention within each span, [CLS] if it is read, and one matrix."""
    head = bert.model.span_classifier
    kernels = [variable.numpy() for variable in head.attention.variables]
    assert len(kernels) == 1
    outputs = bert.model.encoder({name: np.asarray(value) for name, value in inputs.items()})
    states, seen = outputs["sequence_output"].numpy()[0], []
    if head.reads_cls:
        seen.append(outputs["pooled_output"].numpy()[0])
    for number, (start, end) in enumerate(spans):
        scores = np.exp(states[start:end] @ kernels[0][:, number])
        seen.append((scores[:, None] * states[start:end]).sum(axis=0) / scores.sum())
    kernel, bias = (variable.numpy() for variable in head.classifier.dense.variables)
    return np.concatenate(seen) @ kernel + bias


def inputs_of(bert, *texts):
    ids = [[bert.tokenizer.tokenize([text]).to_list()[0]] for text in texts]
    if len(ids) == 2:
        return pair_inputs(*ids, VOCABULARY, 40)
    row = np.array([[VOCABULARY.cls_id, *ids[0][0], VOCABULARY.sep_id]], "int32")
    return {"input_word_ids": row, "input_mask": np.ones_like(row), "input_type_ids": np.zeros_like(row)}


def test_a_span_in_each_text(pair):
    """Of several pieces in one, of the second text's columns in the other; padding beside them."""
    bert, function = pair
    texts = ["A bank by the sea.", "cat"], ["the cats bank", "the cat"]
    answers = function(*texts, [[2, 9], [0, 4]], [[6, 13], [3, 7]])
    second = plain_logits(bert, inputs_of(bert, texts[0][1], texts[1][1]), [(1, 2), (4, 5)])
    assert bert.tokenizer.tokenize(["A bank by the sea.", "the cats"]).row_lengths().numpy().tolist() == [12, 3]
    np.testing.assert_allclose(answers["logits"][1], second, atol=1e-5)
    columns = inputs_of(bert, texts[0][0], texts[1][0])["input_word_ids"][0].tolist()
    start = columns.index(VOCABULARY.sep_id) + 4
    first = plain_logits(bert, inputs_of(bert, texts[0][0], texts[1][0]), [(2, 6), (start, start + 4)])
    np.testing.assert_allclose(answers["logits"][0], first, atol=1e-5)
    assert [label.decode() for label in answers["label"]] == [LABELS[row.argmax()] for row in answers["logits"]]
    np.testing.assert_allclose(answers["probabilities"].sum(axis=1), 1.0, rtol=1e-5)


def test_two_spans_of_one_text(single):
    bert, function = single
    assert bert.model.encoder.pooler is None
    answers = function(["The cat sat, the cat"], [[0, 17]], [[7, 20]])
    expected = plain_logits(bert, inputs_of(bert, "The cat sat, the cat"), [(1, 3), (6, 7)])
    np.testing.assert_allclose(answers["logits"][0], expected, atol=1e-5)


def test_tokens_with_their_columns_are_answered_as_the_text(single):
    bert, function = single
    inputs = inputs_of(bert, "the cat sat")
    by_text = function(["the cat sat"], [[4, 8]], [[7, 11]])
    padded = [np.pad(value, [(0, 0), (0, 3)]) for value in inputs.values()]
    answers = function.answer("tokens", *padded, [[2, 3]], [[3, 4]])
    np.testing.assert_allclose(answers["logits"], by_text["logits"], atol=1e-5)


def test_what_cannot_be_is_not_answered_and_leaves_the_others_as_they_are(single):
    """An empty span, one after the text, one that is cut off, one at -1, where `find` found nothing; in tokens, one in
    the padding or outside the row."""
    _, function = single
    texts, places = ["the cat"] * 5 + ["cat " * 60], [(0, 3), (3, 3), (4, 99), (90, 99), (-1, 2), (230, 233)]
    answers = function(texts, [[start, 0] for start, _ in places], [[end, 3] for _, end in places])
    alone = function(["the cat"], [[0, 0]], [[3, 3]])
    np.testing.assert_allclose(answers["logits"][0], alone["logits"][0], atol=1e-5)
    assert np.isnan(answers["logits"]).all(axis=1).tolist() == [False, True, False, True, True, True]
    ids = np.array([[2, 7, 8, 3, 0]] * 4, "int32")
    mask = (ids > 0).astype("int32")
    starts, ends = [[1, 1], [4, 1], [-1, 1], [2, 1]], [[2, 2], [5, 2], [2, 2], [1, 2]]
    answers = function.answer("tokens", ids, mask, mask * 0, starts, ends)
    assert np.isnan(answers["logits"]).all(axis=1).tolist() == [False, True, True, True]
    assert answers["label"].tolist()[1:] == [b""] * 3


def test_any_bytes_and_no_rows_are_answered(pair):
    _, function = pair
    texts, count = [b"the cat", *HOSTILE], 1 + len(HOSTILE)
    answers = function(texts, texts, [[0, 0]] * count, [[3, 3]] * count)
    alone = function([b"the cat"], [b"the cat"], [[0, 0]], [[3, 3]])
    np.testing.assert_allclose(answers["logits"][0], alone["logits"][0], atol=1e-5)
    none = np.zeros((0, 2), "int32")
    assert len(function.answer("serving_default", [], [], none, none)["logits"]) == 0
    tokens = [np.zeros((2, 0), "int32")] * 3
    assert np.isnan(function.answer("tokens", *tokens, [[0, 0]] * 2, [[1, 1]] * 2)["logits"]).all()


def test_the_export_answers_alike_with_ops_that_serving_knows(pair, tmp_path):
    _, function = pair
    version = write_version(str(tmp_path / "served"), function)
    asked = (["the cat"], ["a cat"], [[4, 2]], [[7, 5]])
    reloaded = ReloadedExport(version, function)
    np.testing.assert_allclose(
        reloaded.answer("serving_default", *asked)["logits"], function(*asked)["logits"], atol=1e-6
    )
    lines = (HERE / "serving_ops.txt").read_text().splitlines()
    for signature in function.signatures.values():
        graph = signature.graph.as_graph_def()
        ops = {
            node.op
            for part in (graph, *graph.library.function)
            for node in (part.node if part is graph else part.node_def)
        }
        assert not {op for op in ops - set(lines) if not op.startswith("__inference")}


def test_a_warm_up_request_is_answered(single):
    _, function = single
    for signature in function.signatures:
        request = warm_up_values(function, signature, 16)
        assert np.isfinite(function.answer(signature, *request.values())["logits"]).all()


def test_a_bilstm_may_stand_between(tmp_path):
    head = SpanPairConfig(LABELS, bilstm_size=3)
    bert = keras_bert.load(write_served(tmp_path / "model", "wic", head))
    assert bert.head == head and not bert.report.made_new
    answers = serving_function(bert)(["the cat"], [[0, 4]], [[3, 7]])
    inputs = {**inputs_of(bert, "the cat"), "span_starts": [[1, 2]], "span_ends": [[2, 3]]}
    logits = bert.model({name: tf.constant(value, tf.int32) for name, value in inputs.items()})["logits"]
    np.testing.assert_allclose(answers["logits"], logits, atol=1e-5)
