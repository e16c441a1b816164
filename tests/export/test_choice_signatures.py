"""The signatures of a model of multiple choice beside the model on the rows of training."""

import numpy as np
from numpy_encoder_inputs import pair_inputs
from scipy.special import softmax

CONTEXTS = ["The cat sat.", "cat " * 50, ""]
BEGINNINGS = ["", "the cat", "a"]
CHOICES = [["sat", "the mat", ""], ["x", "y " * 30, "the"], ["sat", "", "cat"]]


def expected(bert, context, beginning, choices):
    texts = [f"{beginning} {choice}" if beginning else choice for choice in choices]
    firsts, seconds = (bert.tokenizer(column).to_list() for column in ([context] * len(texts), texts))
    inputs = pair_inputs(firsts, seconds, bert.tokenizer.vocabulary, 40)
    return np.asarray(bert.model({name: value[np.newaxis] for name, value in inputs.items()})["logits"])[0]


def test_the_choices_of_each_row(served):
    """As many as it has: "" behind the last is none, "" before others is one."""
    bert, function = served("choice")
    answers = function(CONTEXTS, BEGINNINGS, CHOICES)
    for row, count in enumerate((2, 3, 3)):
        logits = expected(bert, CONTEXTS[row], BEGINNINGS[row], CHOICES[row][:count])
        np.testing.assert_allclose(answers["logits"][row, :count], logits, atol=1e-5)
        np.testing.assert_allclose(answers["probabilities"][row, :count], softmax(logits), atol=1e-5)
        assert answers["choice"][row] == logits.argmax()
    assert answers["logits"][0, 2] == answers["probabilities"][0, 2] == 0


def test_rows_of_two_and_four_choices_go_together(served):
    """A list of lists that differ in length was no tensor, with an error of TensorFlow's."""
    _, function = served("choice")
    rows = [["sat", "the mat"], ["x", "y", "the", "cat"]]
    answers, padded = (
        function(CONTEXTS[:2], BEGINNINGS[:2], choices) for choices in (rows, [[*rows[0], "", ""], rows[1]])
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
