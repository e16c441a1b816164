"""Exports in ONNX: what onnxruntime answers, against the SavedModel's signature and the model itself."""

import sys

import numpy as np
import pytest
import tensorflow as tf
from command_line import give
from pages import blocks
from served import HEADS, KINDS, ROBERTA, VOCABULARY, write_served

import keras_bert
from keras_bert.core.errors import UserError
from keras_bert.export import onnx
from keras_bert.export.onnx import TOLERANCE, convert, open_onnx, write_onnx
from keras_bert.export.signature import Signature
from keras_bert.tasks.span_pairs.task import SpanPairConfig

NAMES = ("input_ids", "attention_mask", "token_type_ids")


def tokens(shape):
    """Rows of ids under transformers' names, with padding at the end of the first."""
    mask = np.ones(shape, "int64")
    mask[0, ..., shape[-1] // 2 :] = 0
    ids = np.random.default_rng(0).integers(5, len(VOCABULARY), shape) * mask
    return dict(zip(NAMES, (ids, mask, (np.arange(shape[-1]) > 2) * mask), strict=True))


def answers(folder, inputs):
    session = open_onnx(f"{folder}/model.onnx")
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


@pytest.mark.parametrize("kind", sorted({*KINDS, ROBERTA} - {"crf", "segment", "masked_lm", "features"}))
def test_it_answers_what_the_saved_model_answers(served, tmp_path, kind):
    """Every output but strings, for any number of rows of any length, padding included."""
    bert, function = served(kind)
    write_onnx(tmp_path / "onnx", bert)
    for shape in [(1, 2, 7), (3, 4, 12)] if kind == "choice" else [(1, 8), (3, 24), (2, 40)]:
        inputs = tokens(shape)
        expected = function.answer("tokens", *(column.astype("int32") for column in inputs.values()))
        received = answers(tmp_path / "onnx", inputs)
        assert set(received) == {name for name, values in expected.items() if values.dtype != object}
        for name, values in received.items():
            other, place = expected[name], ()
            if values.ndim > 1:  # The SavedModel drops columns of padding alone, and rounds their number up.
                place = (slice(None), slice(min(values.shape[1], other.shape[1])))
            np.testing.assert_allclose(values[place], other[place], rtol=TOLERANCE, atol=TOLERANCE)


def test_two_spans_are_compared_before_they_are_written(tmp_path, monkeypatch):
    """The examples used to have empty spans, which both answer with NaN: any wrong network would have passed."""
    bert = keras_bert.load(write_served(tmp_path / "model", "wsc", SpanPairConfig(("no", "yes"), reads_cls=False)))
    monkeypatch.setattr(onnx, "TOLERANCE", -1.0)
    with pytest.raises(UserError, match=r"Received: logits off by (\d\.\de-0[5-9]|0\.0e\+00)\."):
        write_onnx(tmp_path / "onnx", bert)


def test_a_masked_lm_answers_at_positions(served, tmp_path):
    bert, _ = served("masked_lm")
    write_onnx(tmp_path / "onnx", bert, top_k=3)
    inputs, positions = tokens((3, 9)), np.array([[1, 3], [8, 2], [0, 0]])
    received = answers(tmp_path / "onnx", {**inputs, "masked_lm_positions": positions})
    ids, mask, types = inputs.values()
    inputs = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": types, "masked_lm_positions": positions}
    logits = np.asarray(bert.model({name: column.astype("int32") for name, column in inputs.items()})["mlm_logits"])
    np.testing.assert_allclose(received["logits"], logits, rtol=0, atol=TOLERANCE)
    np.testing.assert_array_equal(received["ids"], np.argsort(-received["logits"], axis=-1)[..., :3])


def test_the_command_writes_a_folder_whose_example_runs(tmp_path, monkeypatch):
    """Its card's code, with the tokenizer beside it, answers as `predict` does."""
    model = write_served(tmp_path / "model", "single")
    written = give("export", "--model", model, "--output", str(tmp_path / "onnx"), "--format", "onnx")
    assert "MB" in written.output
    card = (tmp_path / "onnx" / "README.md").read_text(encoding="utf-8")
    [of_page] = [content for language, content, _ in blocks("docs/onnx.md") if language == "python"]
    monkeypatch.chdir(tmp_path / "onnx")
    monkeypatch.syspath_prepend(tmp_path / "onnx")
    monkeypatch.delitem(sys.modules, "tokenizer", raising=False)  # Another folder's.
    names: dict = {}
    for example in (card.partition("```python\n")[2].partition("```")[0], of_page.replace("=128", "=40")):
        exec(compile(example, "example", "exec"), names)
    assert names["label"] in HEADS["single"].labels
    expected = keras_bert.serving_function(keras_bert.load(model))(["a text"])["logits"]
    np.testing.assert_allclose(names["outputs"]["logits"], expected, rtol=0, atol=TOLERANCE)
    refused = give("export", "--model", model, "--output", "o", "--format", "onnx", "--quantize", "int8", status=2)
    assert "needs --format litert" in refused.output


class FailingSession:
    def run(self, *given):
        raise RuntimeError("2 : INVALID_ARGUMENT\nNode: Gather")


def test_what_cannot_be_exported_is_refused_in_one_line(served, tmp_path, monkeypatch):
    """A CRF, ops that ONNX lacks, a model that does not run, answers that are not its own: each would fail in use."""
    with pytest.raises(UserError, match="--format onnx needs a head without a CRF"):
        write_onnx(tmp_path / "onnx", keras_bert.load(write_served(tmp_path / "model", "crf")))
    inputs = (tf.TensorSpec([None, None], tf.float32, name="input_ids"),)
    with pytest.raises(UserError, match="needs a model of ONNX's own ops.*Igamma") as refused:
        convert(Signature(lambda ids: {"gamma": tf.math.igamma(ids, ids)}, inputs), "model")
    assert "\n" not in str(refused.value)
    bert, _ = served("single")
    with monkeypatch.context() as patch:
        patch.setattr(onnx, "open_onnx", lambda content: FailingSession())
        with pytest.raises(UserError, match="needs a model that onnxruntime runs. Received: 2 : INVALID") as refused:
            write_onnx(tmp_path / "onnx", bert)
    assert "\n" not in str(refused.value)
    monkeypatch.setattr(onnx, "TOLERANCE", -1.0)
    with pytest.raises(UserError, match="needs onnxruntime to answer as TensorFlow does"):
        write_onnx(tmp_path / "onnx", bert)
    assert not (tmp_path / "onnx").exists()
