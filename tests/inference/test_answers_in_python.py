"""A loaded model of every kind answers in Python as its export does; `test_classify.py` has the classifiers."""

import numpy as np
import pytest
from served import HEADS, write_served

from keras_bert.export.serving_function import signatures_of
from keras_bert.inference.loading import load
from keras_bert.tasks.sentence_vectors.task import SentenceVectorsConfig
from keras_bert.tasks.span_pairs.task import SpanPairConfig
from keras_bert.tasks.tagging.in_python import Entity, TaggedText

TEXTS = ["The cat sat.", "cats", ""]


def opened(tmp_path, kind, **task):
    bert = load(write_served(tmp_path / "model", kind, HEADS.get(kind), **task))
    return bert, signatures_of(bert)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tagging", "features", "crf"])
def test_a_tagger_labels_texts_and_lists_of_words(tmp_path, kind):
    bert, function = opened(tmp_path, kind)
    exported = function(TEXTS)
    for number, (text, answer) in enumerate(zip(TEXTS, bert.predict(TEXTS), strict=True)):
        count = exported["num_words"][number]
        assert answer.labels == [label.decode() for label in exported["labels"][number][:count]]
        np.testing.assert_allclose(answer.scores, exported["scores"][number][:count], rtol=1e-4)
        assert answer.words == [text[start:end] for start, end in zip(answer.starts, answer.ends)]
    first, second = bert.predict([["The", "cat", "sat."], ["cats"]])
    assert first.words == ["The", "cat", "sat."] and first.starts == [0, 4, 8] and len(second.labels) == 1
    assert bert.predict([np.array(first.words), np.array(["cats"], object)]) == [first, second]
    given = function.answer("words", [["The", "cat", "sat."], ["cats"]])
    assert first.labels == [label.decode() for label in given["labels"][0]]
    with pytest.raises(ValueError, match="needs only texts or only lists of words"):
        bert.predict(["cats", ["cats"]])
    with pytest.raises(ValueError, match=r"needs a last word that is not empty. Received: \['cats', ''\]"):
        bert.predict([["The"], ["cats", ""]])  # These would get one answer.


def test_entities_are_the_words_that_the_labels_join():
    tagged = TaggedText(
        ["Ann", "Lee", "saw", "Bonn"], ["B-PER", "I-PER", "O", "B-LOC"], [1.0] * 4, [0, 4, 8, 12], [3, 7, 11, 16]
    )
    assert tagged.entities == [Entity("PER", "Ann Lee", 0, 7), Entity("LOC", "Bonn", 12, 16)]
    assert TaggedText(["a"], ["NOUN"], [1.0], [0], [1]).entities == []


def test_a_reader_answers_questions(tmp_path):
    bert, function = opened(tmp_path, "answering", unanswerable=False, max_answer_length=5)
    passage = "the cat sat on 中"
    exported = function(["who", "what"], [passage, passage])
    answers = bert.predict([("who", passage), {"question": "what", "context": passage}])
    assert [answer.text for answer in answers] == [text.decode() for text in exported["answer"]]
    assert all(passage[answer.start : answer.end] == answer.text for answer in answers)
    assert answers[0].probability == max(answers[0].candidates.values())
    assert bert.predict([]) == []
    with pytest.raises(ValueError, match="needs a question and its passage for each. Received: who"):
        bert.predict(["who"])


def test_a_choice_is_made(tmp_path):
    bert, function = opened(tmp_path, "choice")
    exported = function(["the", "the"], ["", "sat"], [["cat", "sat"], ["a", "b", "the"]])
    plain, asked = bert.predict(
        [("the", ["cat", "sat"]), {"context": "the", "question": "sat", "choices": list("ab") + ["the"]}]
    )
    assert (plain.index, asked.index) == tuple(exported["choice"])
    choices = np.array(["cat", "sat"], object)  # As pandas reads them.
    for answer in bert.predict([("the", choices), {"context": "the", "choices": choices}]):
        assert (answer.index, answer.text) == (plain.index, plain.text)
        # A row in another batch may be summed in another order.
        np.testing.assert_allclose(answer.probabilities, plain.probabilities, rtol=1e-6)
    np.testing.assert_allclose(asked.probabilities, exported["probabilities"][1], rtol=1e-4)
    assert plain.text == ["cat", "sat"][plain.index] and plain.probability == max(plain.probabilities)
    with pytest.raises(ValueError, match="needs a context and two choices or more for each"):
        bert.predict([("the", ["cat"])])
    with pytest.raises(ValueError, match=r"needs a text for each choice. Received: \['cat', ' '\]"):
        bert.predict([("the", ["cat", " "])])


@pytest.mark.slow
def test_words_are_separated(tmp_path):
    bert, function = opened(tmp_path, "segment")
    assert bert.predict(["thecat", "中the"]) == [text.decode() for text in function(["thecat", "中the"])["segmented"]]


def test_vectors_of_texts_and_cosines_of_pairs(tmp_path):
    bert = load(write_served(tmp_path / "model", "vectors", SentenceVectorsConfig(("score",))))
    first, second = bert.predict(["the cat", "sat"])
    np.testing.assert_allclose([first, second], signatures_of(bert)(["the cat", "sat"])["vectors"], atol=1e-6)
    assert bert.predict([("the cat", "sat")]) == [pytest.approx(float(first @ second), abs=1e-5)]


def test_two_spans_are_classified(tmp_path):
    bert = load(write_served(tmp_path / "model", "spans", SpanPairConfig(("no", "yes")), pair=False))
    (answer,) = bert.predict([{"text": "the cat sat", "starts": [0, 4], "ends": [3, 7]}])
    exported = signatures_of(bert)(["the cat sat"], [[0, 4]], [[3, 7]])
    assert answer.label == exported["label"][0].decode()
    np.testing.assert_allclose(list(answer.probabilities.values()), exported["probabilities"][0], rtol=1e-4)
    whole = {"text": "the cat", "starts": [0, 4], "ends": [3, 7]}
    for wrong in ("the cat", {**whole, "starts": [0]}, {**whole, "ends": 7}, {**whole, "ends": [3, 7.5]}):
        with pytest.raises(ValueError, match="needs a dict of text, starts, ends, the last two with a whole number"):
            bert.predict([wrong])
    with pytest.raises(ValueError, match="texts: needs strings. Received: None"):
        bert.predict([{**whole, "text": None}])
    # The graph gives NaN for it, which would look like a model that has diverged.
    empty = {"text": "the cat", "starts": [0, 3], "ends": [3, 4]}
    with pytest.raises(
        ValueError, match="needs two spans that are not empty, among the first .* Received: {'text': 'the cat'"
    ):
        bert.predict([{"text": "the cat sat", "starts": [0, 4], "ends": [3, 7]}, empty])
