"""What `keras_bert.load` gives."""

import copy
import os
import pickle
import threading

import numpy as np
import pandas
import pytest
import tensorflow as tf
from tiny import without_dropout, write_random

import keras_bert
from keras_bert.checkpoints import model_folder
from keras_bert.core.errors import UserError
from keras_bert.export.serving_function import serving_function, signatures_of
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.text.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "##s", "."])
    model = BertForPreTraining(without_dropout(vocab_size=len(vocabulary)))
    return keras_bert.load(write_random(tmp_path_factory.mktemp("model") / "model", model, vocabulary))


def test_a_text_is_encoded_alone_as_in_company(bert):
    """Padding must not enter the mean, and a too long text is cut."""
    texts = ["The cat sat.", "cats", "", "the " * 50]
    together = bert.encode(texts)
    assert together.shape == (4, bert.config.hidden_size)
    for row, text in zip(together, texts, strict=True):
        np.testing.assert_allclose(bert.encode([text])[0], row, rtol=1e-4, atol=1e-5)


def test_the_mean_is_over_the_tokens_of_the_text(bert):
    ids = bert.tokenizer.vocabulary.ids
    row = np.array([[ids[token] for token in ("[CLS]", "cat", "##s", "[SEP]")]], "int32")
    states = bert.encoder({"input_word_ids": row, "input_mask": row * 0 + 1, "input_type_ids": row * 0})
    expected = states["sequence_output"].numpy()[0].mean(axis=0)
    np.testing.assert_allclose(bert.encode(["cats"])[0], expected, rtol=1e-5, atol=1e-6)


def test_a_folder_is_opened_once(bert, monkeypatch):
    """Each need for more than was loaded would open the folder again: five times for `predict`."""
    opened, as_before = [], model_folder._opened
    monkeypatch.setattr(model_folder, "_opened", lambda *arguments: opened.append(1) or as_before(*arguments))
    serving_function(keras_bert.load(bert.path))
    assert len(opened) == 1


def test_what_is_kept_is_the_same_in_all_threads(bert):
    """Each thread of a server that answered its first request kept, and traced, a function of its own."""
    others = []

    def make():
        if not others:
            others.append(None)
            thread = threading.Thread(target=lambda: others.append(bert.once("of threads", make)))
            thread.start()
            thread.join()
        return object()

    assert [None, bert.once("of threads", make)] == others


def test_a_discriminator_fills_no_masks(goldens):
    """The message must not advise pretraining, which would make a discriminator again."""
    with pytest.raises(UserError, match=r"a masked LM head to fill \[MASK\]s. Received: an ELECTRA.$"):
        keras_bert.load(os.path.join(goldens, "electra")).fill(["a [MASK]"])


def test_a_text_is_no_list_of_labels(bert):
    """Its letters would be the labels."""
    with pytest.raises(UserError, match="labels: needs a list of labels. Received: the text 'no'. Put it into a list."):
        keras_bert.load(bert.path, task="text", labels="no")
    with pytest.raises(UserError, match="labels: needs a list of labels. Received: 3. Put it into a list."):
        keras_bert.load(bert.path, task="text", labels=3)
    with pytest.raises(UserError, match="labels: needs a task, .* Received: none."):
        keras_bert.load(bert.path, labels=["no", "yes"])


@pytest.mark.parametrize("path", [None, 3])
def test_a_path_is_text(path):
    with pytest.raises(UserError, match=f"path: needs a model's folder or hf:NAME. Received: {path}."):
        keras_bert.load(path)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda bert: pickle.loads(pickle.dumps(bert))])
def test_a_model_that_has_answered_can_be_copied(bert, copied):
    """Functions that are traced cannot be."""
    vectors, answers = bert.encode(["the cat"]), signatures_of(bert)(["the [MASK]"])
    other = copied(bert)
    assert other.model is not bert.model
    np.testing.assert_array_equal(other.encode(["the cat"]), vectors)
    np.testing.assert_array_equal(signatures_of(other)(["the [MASK]"])["scores"], answers["scores"])


@pytest.mark.parametrize("method", ["predict", "fill", "generate", "encode"])
@pytest.mark.parametrize("text", ["I love [MASK] it", b"bytes"])
def test_a_text_is_no_list_of_texts(bert, method, text):
    """It would be answered character by character."""
    with pytest.raises(ValueError, match="needs a list of texts. Received: the text "):
        getattr(bert, method)(text)


@pytest.mark.parametrize("method", ["predict", "encode"])
@pytest.mark.parametrize(
    ("texts", "received"),
    [
        (pandas.DataFrame({"text": ["The cat [MASK].", "cats"]}), "a DataFrame. Give one of its columns"),
        ({"text [MASK]": ["The cat sat.", "cats"]}, "a dict. Give one of its columns"),
        (None, "None. Put the texts into a list"),
    ],
)
def test_a_table_is_no_list_of_texts(bert, method, texts, received):
    """The names of its columns would be answered instead of its texts."""
    with pytest.raises(ValueError, match=f"texts: needs a list of texts. Received: {received}"):
        getattr(bert, method)(texts)


def test_encoder_inputs_work_in_a_dataset(bert):
    """docs/python.md promises it for the tokenizer; building its rows must not raise NotImplementedError."""
    texts, vocabulary = ["The cat sat.", "cats"], bert.tokenizer.vocabulary
    expected = keras_bert.encoder_inputs(bert.tokenizer(texts).to_list(), vocabulary)
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(2)
    (received,) = dataset.map(lambda texts: keras_bert.encoder_inputs(bert.tokenizer(texts), vocabulary))
    eager = keras_bert.encoder_inputs(bert.tokenizer(texts), vocabulary)
    for name, column in expected.items():
        np.testing.assert_array_equal(received[name], column)
        np.testing.assert_array_equal(eager[name], column)
