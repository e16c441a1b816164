"""What a loaded classifier answers."""

import numpy as np
import pytest
from tiny import VOCABULARY as PLAIN
from tiny import without_dropout, write_random

from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION
from keras_bert.core.errors import UserError
from keras_bert.export.serving_function import serving_function
from keras_bert.inference.loading import load
from keras_bert.tasks.classification.head import ClassificationConfig, NextSentenceConfig
from keras_bert.tasks.classification.network import BertForNextSentencePrediction, BertForSequenceClassification
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "the", "cat", "sat", "##s", "."])
TEXTS = ["The cat sat.", "cats", "", "the " * 50]


def loaded(tmp_path, classification):
    model = BertForSequenceClassification(without_dropout(vocab_size=len(VOCABULARY)), classification.num_labels)
    return load(write_random(tmp_path / "model", model, VOCABULARY, head=classification))


def logits(bert, *segments):
    """Of one text, written out in tokens."""
    ids = [[VOCABULARY.ids[token] for token in segment] for segment in segments]
    row = np.array([sum(ids, [])], "int32")
    types = np.repeat(range(len(ids)), list(map(len, ids)))[None].astype("int32")
    inputs = {"input_word_ids": row, "input_mask": row * 0 + 1, "input_type_ids": types}
    return bert.model(inputs)["logits"].numpy()[0].astype("float64")


def test_a_class_has_its_name_and_all_probabilities(tmp_path):
    bert = loaded(tmp_path, ClassificationConfig(("a", "b", "c")))
    expected = np.exp(logits(bert, ["[CLS]", "cat", "##s", "[SEP]"]))
    expected /= expected.sum()
    (answer,) = bert.predict(["cats"])
    np.testing.assert_allclose([answer.probabilities[label] for label in "abc"], expected, rtol=1e-5)
    assert answer.label == "abc"[expected.argmax()] and answer.probability == max(answer.probabilities.values())


def test_a_classifier_has_no_candidates_to_count(tmp_path):
    """Asked for the best label with top_k, it would answer with all of them."""
    bert = loaded(tmp_path, ClassificationConfig(("a", "b")))
    with pytest.raises(UserError, match="top_k: needs a masked LM. Received: a BertForSequenceClassification. Leave"):
        bert.predict(["cats"], top_k=1)


def test_several_labels_have_each_their_own_probability(tmp_path):
    bert = loaded(tmp_path, ClassificationConfig(("a", "b"), MULTI_LABEL))
    expected = 1 / (1 + np.exp(-logits(bert, ["[CLS]", "cat", "##s", "[SEP]"])))
    np.testing.assert_allclose(list(bert.predict(["cats"])[0].values()), expected, rtol=1e-5)


def test_regression_gives_the_number(tmp_path):
    bert = loaded(tmp_path, ClassificationConfig(("score",), REGRESSION))
    assert bert.predict(["cats"]) == [pytest.approx(logits(bert, ["[CLS]", "cat", "##s", "[SEP]"])[0], rel=1e-5)]


def test_a_pair_has_two_segments(tmp_path):
    bert = loaded(tmp_path, ClassificationConfig(("score",), REGRESSION))
    expected = logits(bert, ["[CLS]", "the", "cat", "[SEP]"], ["cat", "##s", ".", "[SEP]"])[0]
    assert bert.predict([("The cat", "cats.")]) == [pytest.approx(expected, rel=1e-5)]
    with pytest.raises(ValueError, match="Received: 'cats'"):
        bert.predict([("The cat", "cats."), "cats"])


@pytest.mark.parametrize(("pair", "texts"), [(True, ["The cat sat."]), (False, [("The cat", "sat.")]), (True, ["ab"])])
def test_a_model_answers_what_it_was_trained_on(tmp_path, pair, texts):
    """A model of pairs would make up an answer to a single text."""
    head, model = ClassificationConfig(("a", "b")), BertForSequenceClassification(without_dropout(), 2)
    task = {"task": "text", "pair": pair}
    write_model_folder(str(tmp_path / "model"), model, PLAIN, lower_case=True, head=head, task=task)
    with pytest.raises(ValueError, match=f"needs only {'pairs of' if pair else 'single'} texts. Received: "):
        load(str(tmp_path / "model")).predict(texts)


def test_what_is_no_text_is_refused_in_one_line(tmp_path):
    """Bytes would fail in the tokenizer, None would count as a pair, and half a surrogate pair fail in TensorFlow."""
    bert = loaded(tmp_path, ClassificationConfig(("score",), REGRESSION))
    text = "The cat sat. é"
    assert bert.predict([text.encode()]) == bert.predict([text])
    assert bert.predict([[text.encode(), text]]) == bert.predict([(text, text)])
    assert bert.encode([text.encode()]).tolist() == bert.encode([text]).tolist()
    for wrong, message in (
        (None, "strings. Received: None. Give"),
        (("a", "b", "c"), r"strings. Received: \('a', 'b', 'c'\)"),
        (("a", float("nan")), "strings. Received: nan"),
        ("a \ud83d", r"UTF-8. Received: 'a \\ud83d' \(surrogates not allowed\)"),
        (b"caf\xe9", r"UTF-8. Received: b'caf\\xe9' \(unexpected end of data\)"),
    ):
        for answer in (bert.predict, bert.encode):
            with pytest.raises(ValueError, match=f"texts: needs {message if answer is bert.predict else ''}"):
                answer([wrong])


@pytest.mark.slow
def test_each_text_is_answered_as_if_alone(tmp_path):
    """In order and across batches, including empty and too long texts."""
    bert = loaded(tmp_path, ClassificationConfig(("score",), REGRESSION))
    answers = bert.predict(TEXTS * 10)
    assert len(answers) == 40 and bert.predict([]) == []
    np.testing.assert_allclose(answers[:4], [bert.predict([text])[0] for text in TEXTS], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(answers, answers[:4] * 10, rtol=1e-4, atol=1e-5)
    assert len(bert.predict([("the " * 50, "cat " * 50)])) == 1


@pytest.mark.slow
def test_a_next_sentence_head_says_whether_a_text_follows(tmp_path):
    """A BertForNextSentencePrediction would be opened as an encoder, without its head."""
    model = BertForNextSentencePrediction(without_dropout(vocab_size=len(VOCABULARY)))
    bert = load(write_random(tmp_path / "model", model, VOCABULARY, head=NextSentenceConfig()))
    assert bert.head == NextSentenceConfig() and not bert.report.unused
    (answer,) = bert.predict([("the cat", "sat .")])
    assert list(answer.probabilities) == ["IsNext", "NotNext"]
    assert serving_function(bert)(["the cat"], ["sat ."])["label"][0].decode() == answer.label
    with pytest.raises(ValueError, match="needs only pairs of texts"):
        bert.predict(["the cat"])


def test_a_classifier_fills_no_masks(tmp_path):
    with pytest.raises(UserError, match="needs a masked LM head to fill .* holds a BertForSequenceClassification"):
        loaded(tmp_path, ClassificationConfig(("a", "b"))).fill(["the [MASK]"])
