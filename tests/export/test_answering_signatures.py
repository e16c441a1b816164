"""The signatures of readers and of multiple choice against the windows, rows and decoding of training."""

import numpy as np
import pytest
from numpy_encoder_inputs import pair_inputs
from own_tasks import qa_task
from scipy.special import softmax
from squad_file import paragraph, write_squad

from keras_bert.tasks.question_answering.data import load_questions
from keras_bert.tasks.question_answering.decoding import decode, decoded
from keras_bert.tasks.question_answering.windows import question_windows

CONTEXTS = [
    "The cat sat on the mat, the cat said. " * 6,
    "José’s café — 中文 and ½ of a “pie” — is open. \U0001f408 sat.",
    "cat",
    "the the the the the the the the the the the the the the the the the the the the the the the the the the the cat",
]
QUESTIONS = ["Who sat?", "", "where did the old cat of the house sit and what did it say to the other cats there"]
LENGTHS = {"max_length": 24, "stride": 7, "max_question_length": 9, "max_answer_length": 5}


def by_python(bert, path, n_best):
    """The `Decoded` of each question, by `evaluate`'s rows and decoding."""
    answered = load_questions(qa_task(test=path, unanswerable=True), "test")
    lengths = {name: value for name, value in LENGTHS.items() if name != "max_answer_length"}
    windows = question_windows(answered, bert.tokenizer, **lengths)
    rows, outputs = windows.rows, {"start_logits": [], "end_logits": []}
    for start, length, second in zip(rows.starts, rows.lengths, rows.second_starts):
        ids = rows.ids[start : start + length][np.newaxis]
        types = (np.arange(length) >= second).astype("int32")[np.newaxis]
        answers = bert.model({"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": types})
        for name, values in outputs.items():
            values.append(np.asarray(answers[name])[0])
    return answered, list(decode(answered, windows, outputs, LENGTHS["max_answer_length"], n_best))


@pytest.mark.slow
@pytest.mark.parametrize("n_best", [1, 4])
def test_answers_are_those_of_the_rows_and_the_decoding_of_training(served, tmp_path, n_best):
    """Windows inside the graph, the window of most context, texts that differ, the null and its window."""
    bert, function = served("answering", reading=tuple(LENGTHS.items()), n_best=n_best)
    asked = [(question, context) for context in CONTEXTS for question in QUESTIONS]
    path = write_squad(
        tmp_path / "a.json",
        *(paragraph(context, (str(number), question)) for number, (question, context) in enumerate(asked)),
    )
    answered, expected = by_python(bert, path, n_best)
    served_rows = function.answers_by_length(*zip(*asked))
    assert len(answered) == len(served_rows) == 12
    for row, one in zip(served_rows, expected):
        received = decoded(row)
        assert [span[:3] for span in received.spans] == [span[:3] for span in one.spans]
        for span, other in zip([*received.spans, received.null], [*one.spans, one.null]):
            np.testing.assert_allclose(span[3:], other[3:], atol=1e-5)
        assert row["answer"].decode() == one.best_text and row["null_score"] == pytest.approx(one.null.score, abs=1e-5)
        assert row["score"] == pytest.approx(one.spans[0].score, abs=1e-5)
        assert (row["start"], row["end"]) == one.spans[0][1:3]


def test_a_passage_without_pieces_has_no_answer(served):
    _, function = served("answering", n_best=3)
    answers = function(["who", "who"], ["", " \u200b "])
    assert answers["answer"].tolist() == [b"", b""] and answers["num_answers"].tolist() == [0, 0]
    assert answers["score"] == pytest.approx(answers["null_score"]) and not answers["n_best_starts"].any()


@pytest.mark.parametrize(("threshold", "answers"), [(-100.0, [b"", b""]), (100.0, None)])
def test_no_answer_above_the_threshold(served, threshold, answers):
    reading = (("unanswerable", True), ("null_threshold", threshold))
    _, function = served("answering", reading=reading)
    given = function(["who sat", "what"], ["the cat", "cat sat"])
    if answers is None:
        assert all(given["answer"]) and given["score"] == pytest.approx(
            given["n_best_start_logits"][:, 0] + given["n_best_end_logits"][:, 0]
        )
    else:
        assert given["answer"].tolist() == answers and given["score"] == pytest.approx(given["null_score"])


def test_bytes_that_are_not_utf8_are_left_out_of_the_answer(served):
    """As everywhere, places count the code points that are left."""
    _, function = served("answering")
    given = function([b"who"], [b"\xff\xfecat\xff"])
    assert given["answer"].tolist() == [b"cat"] and (given["start"][0], given["end"][0]) == (0, 3)


def test_tokens_give_the_logits_of_the_network(served):
    bert, function = served("answering")
    ids = np.array([[2, 7, 3, 8, 9, 3, 0, 0]], "int32")
    mask, types = (ids > 0).astype("int32"), np.array([[0, 0, 0, 1, 1, 1, 0, 0]], "int32")
    expected = bert.model({"input_word_ids": ids, "input_mask": mask, "input_type_ids": types})
    answers = function.answer("tokens", ids, mask, types)
    for name in ("start_logits", "end_logits"):
        np.testing.assert_allclose(answers[name][:, :6], np.asarray(expected[name])[:, :6], atol=1e-5)


CHOICE_CONTEXTS = ["The cat sat.", "cat " * 50, ""]
BEGINNINGS = ["", "the cat", "a"]
CHOICES = [["sat", "the mat", ""], ["x", "y " * 30, "the"], ["sat", "", "cat"]]


def expected(bert, context, beginning, choices):
    texts = [f"{beginning} {choice}" if beginning else choice for choice in choices]
    firsts, seconds = (bert.tokenizer(column).to_list() for column in ([context] * len(texts), texts))
    inputs = pair_inputs(firsts, seconds, bert.tokenizer.vocabulary, 40)
    return np.asarray(bert.model({name: value[np.newaxis] for name, value in inputs.items()})["logits"])[0]


def test_the_choices_of_each_row(served):
    """A row has as many as it gives: "" after the last is none, "" before others is one."""
    bert, function = served("choice")
    answers = function(CHOICE_CONTEXTS, BEGINNINGS, CHOICES)
    for row, count in enumerate((2, 3, 3)):
        logits = expected(bert, CHOICE_CONTEXTS[row], BEGINNINGS[row], CHOICES[row][:count])
        np.testing.assert_allclose(answers["logits"][row, :count], logits, atol=1e-5)
        np.testing.assert_allclose(answers["probabilities"][row, :count], softmax(logits), atol=1e-5)
        assert answers["choice"][row] == logits.argmax()
    assert answers["logits"][0, 2] == answers["probabilities"][0, 2] == 0


def test_rows_of_two_and_four_choices_go_together(served):
    """Lists that differ in length used to end in an error of TensorFlow's, as they are no tensor."""
    _, function = served("choice")
    rows = [["sat", "the mat"], ["x", "y", "the", "cat"]]
    answers, padded = (
        function(CHOICE_CONTEXTS[:2], BEGINNINGS[:2], choices) for choices in (rows, [[*rows[0], "", ""], rows[1]])
    )
    for name, values in answers.items():
        np.testing.assert_array_equal(values, padded[name], name)


def test_a_row_without_choices_is_answered(served):
    _, function = served("choice")
    answers = function(["cat", "cat"], ["", ""], [["", ""], ["x", ""]])
    assert not answers["probabilities"][0].any() and answers["probabilities"][1].tolist() == [1, 0]


def test_tokens_of_every_choice(served):
    bert, function = served("choice")
    ids = np.array(
        [[[2, 7, 3, 8, 3], [2, 7, 3, 9, 3], [0] * 5], [[2, 8, 3, 0, 0], [2, 9, 3, 0, 0], [2, 7, 3, 7, 3]]], "int32"
    )
    mask = (ids > 0).astype("int32")
    logits = np.asarray(bert.model({"input_word_ids": ids, "input_mask": mask, "input_type_ids": ids * 0})["logits"])
    answers = function.answer("tokens", ids, mask, ids * 0)
    there = np.isfinite(logits)
    np.testing.assert_allclose(answers["logits"][there], logits[there], atol=1e-5)
    assert answers["choice"].tolist() == logits.argmax(axis=1).tolist() and answers["probabilities"][0, 2] == 0
