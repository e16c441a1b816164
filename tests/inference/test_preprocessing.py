"""Strings in a Keras model: training and serving ids alike, in `ds.map`, in `fit` and through a .keras file."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from served import write_served

import keras_bert
from keras_bert.config.finetuning import REGRESSION
from keras_bert.core.errors import UserError
from keras_bert.export.signature import TextInputs

TEXTS = ["The cat sat.", "", "the " * 30 + "cat"]
OTHERS = ["中 sat", "cats", "sat " * 30]


@pytest.fixture(scope="module", params=["masked_lm", "albert"])
def folder(request, tmp_path_factory):
    return write_served(tmp_path_factory.mktemp(request.param) / "model", request.param)


@pytest.mark.parametrize("long", ["truncate", "head_tail"])
@pytest.mark.parametrize("columns", [(TEXTS,), (TEXTS, OTHERS)], ids=["single", "pairs"])
def test_the_ids_are_those_of_the_export(folder, columns, long):
    bert = keras_bert.load(folder)
    reading = bert.folder.reading.__class__(16, long=long, pair=len(columns) == 2)
    expected, _ = TextInputs(bert.config, bert.tokenizer, reading).from_columns(*map(tf.constant, columns))
    given = columns if len(columns) == 2 else columns[0]
    for length in ("fixed", "longest"):
        preprocess = bert.preprocessor(16, long, length)
        for inputs in (preprocess(given), preprocess(dict(enumerate(columns)))):
            for name, column in inputs.items():
                width = min(column.shape[1], expected[name].shape[1])
                np.testing.assert_array_equal(column[:, :width], expected[name][:, :width])
        assert inputs["input_mask"].shape[1] == 16
    short = bert.preprocessor(16, length="longest")(["cat"])
    assert short["input_mask"].numpy().all() and bert.preprocessor(16)(["cat"])["input_mask"].shape == (1, 16)
    mapped = tf.data.Dataset.from_tensor_slices(columns[0]).batch(2).map(bert.preprocessor(16))
    assert mapped.element_spec["input_word_ids"].shape.as_list() == [None, 16]


def test_ragged_rows_hold_every_token_and_no_padding(folder):
    bert = keras_bert.load(folder)
    ragged, fixed = bert.preprocessor(16, length="ragged"), bert.preprocessor(16)
    padded = fixed(TEXTS)
    for name, rows in ragged(TEXTS).items():
        assert rows.row_lengths().numpy().tolist() == padded["input_mask"].numpy().sum(axis=1).tolist()
        values = rows.to_tensor(bert.tokenizer.vocabulary.pad_id if name == "input_word_ids" else 0, [None, 16])
        np.testing.assert_array_equal(values, padded[name])
    rows = tf.data.Dataset.from_tensor_slices(TEXTS).batch(2).map(ragged).unbatch()
    assert [int(row["input_mask"].shape[0]) for row in rows] == padded["input_mask"].numpy().sum(axis=1).tolist()


@pytest.mark.slow
def test_a_model_of_strings_is_fitted_saved_and_written_as_a_folder(folder, tmp_path):
    bert = keras_bert.load(folder, task="text", labels=["bad", "good"])
    preprocess, text = bert.preprocessor(max_length=12), keras.Input((), dtype="string")
    model = keras.Model(text, bert.model(preprocess(text))["logits"])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras_bert.AdamW(1e-2), loss, jit_compile=False)
    examples = tf.data.Dataset.from_tensor_slices((["the cat", "sat sat"] * 8, [1, 0] * 8)).batch(4)
    losses = model.fit(examples, epochs=5, verbose=0).history["loss"]
    assert losses[-1] < 0.8 * losses[0]
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    asked = tf.constant(["the cat", "sat"])
    np.testing.assert_array_equal(again(asked), model(asked))
    vocabulary = bert.tokenizer.vocabulary
    keras_bert.write_model_folder(
        str(tmp_path / "out"), bert.model, vocabulary, bert.tokenizer.lower_case, head=bert.head
    )
    probabilities = [
        list(answer.probabilities.values()) for answer in keras_bert.load(tmp_path / "out").predict(["the cat", "sat"])
    ]
    np.testing.assert_allclose(probabilities, keras.ops.softmax(model(asked)), rtol=1e-4, atol=1e-5)
    assert bert.predict(["the cat"])[0].label in ("bad", "good")


def test_a_row_has_room_for_the_special_tokens_of_its_vocabulary(tmp_path):
    """RoBERTa's pairs have four; with a length of three, a row of two texts would have the wrong special tokens."""
    preprocess = keras_bert.load(write_served(tmp_path / "model", "roberta")).preprocessor(3)
    assert preprocess(["the cat"])["input_mask"].numpy().tolist() == [[1, 1, 1]]
    with pytest.raises(UserError, match="max_length: needs 4 tokens or more, the special ones of .*. Received: 3."):
        preprocess((["the cat"], ["a cat"]))


def test_invalid_arguments_are_named(folder):
    bert = keras_bert.load(folder)
    with pytest.raises(
        ValueError, match="long, length: need truncate or head_tail and longest, fixed, ragged. Received: windows"
    ):
        bert.preprocessor(long="windows")
    with pytest.raises(ValueError, match=r"needs columns of one length. Received: shapes \(1,\) and \(2,\)"):
        bert.preprocessor(8)((["w1"], ["w2", "w3"]))
    with pytest.raises(ValueError, match="needs one column of texts, or two for pairs. Received: 3"):
        bert.preprocessor(8)((["a"], ["b"], ["c"]))
    for length in (0, 2):  # Rows would lose their special tokens, and 0 would mean the model's own length.
        with pytest.raises(ValueError, match=f"max_length: needs 3 tokens or more. Received: {length}"):
            bert.preprocessor(length)
    for task, labels, message in (
        ("tekst", None, "task: needs one of .*text.* Received: 'tekst'"),
        ("text", None, "text: needs labels. Received: none"),
        ("text", ["a", "a"], "labels: needs names that differ"),
        ("squad", ["a"], "labels: needs none for squad"),
        ("stsb", ["score"], "labels: needs none for stsb"),
        ("segment", ["B"], "segment: needs keras_bert.finetune, which learns"),
    ):
        with pytest.raises(UserError, match=message):
            keras_bert.load(folder, task=task, labels=labels)
    for task in ("stsb", "rerank", "pairs-contrastive"):  # These need no labels.
        assert keras_bert.load(folder, task=task).head.problem_type == REGRESSION
    assert 0 < keras_bert.load(folder, task="rerank").predict([("the cat", "sat")])[0] < 1
    assert keras_bert.load(folder, task="squad").head.architecture == "BertForQuestionAnswering"
