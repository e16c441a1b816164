"""The answers of `predict`, and of an export's signature on strings, to compare with those of `evaluate`."""

import itertools

import numpy as np
from scipy.special import logit

from keras_bert.tasks.multiple_choice.problem import MultipleChoiceProblem
from keras_bert.tasks.question_answering.decoding import decoded
from keras_bert.tasks.question_answering.problem import QuestionAnsweringProblem
from keras_bert.tasks.sentence_vectors.problem import ContrastiveProblem
from keras_bert.tasks.span_pairs.data import columns_of
from keras_bert.tasks.span_pairs.problem import SpanPairProblem
from keras_bert.tasks.tagging.problem import TaggingProblem


def predicted_answers(model, split):
    """A `FinetunedModel`'s answers to a split by windows, as `predict` computes them."""
    return _joined(model.problem, [model.answers_to(window) for window in model.problem.windows(split)])


def exported_answers(problem, split, function):
    """A `ServingFunction`'s answers to the texts of a split, as from `Problem.answers`."""
    if isinstance(problem, QuestionAnsweringProblem):
        answers_of = _extracted
    elif isinstance(problem, TaggingProblem):
        answers_of = _labels
    else:
        answers_of = _chosen if isinstance(problem, MultipleChoiceProblem) else _logits
    return _joined(problem, [answers_of(problem, window, function) for window in problem.windows(split)])


def assert_same_answers(problem, one, other):
    """Equal except for rounding."""
    if isinstance(problem, TaggingProblem):
        assert one == other
    elif isinstance(problem, QuestionAnsweringProblem):
        assert one.keys() == other.keys()
        for name in one:
            assert one[name].best_text == other[name].best_text
            scores = ([span.score for span in (answer.null, *answer.spans)] for answer in (one[name], other[name]))
            np.testing.assert_allclose(*scores, atol=1e-4)
    else:
        assert len(one) == len(other)
        np.testing.assert_allclose(np.concatenate(one), np.concatenate(other), atol=1e-5)


def _joined(problem, parts):
    if isinstance(problem, QuestionAnsweringProblem):
        return {name: answer for part in parts for name, answer in part.items()}
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return [answer for part in parts for answer in part]


def _extracted(problem, window, function):
    passages = [window.passages[question.passage] for question in window.questions]
    served = function.answers_by_length([question.text for question in window.questions], passages)
    return dict(zip([question.id for question in window.questions], map(decoded, served), strict=True))


def _labels(problem, window, function):
    tagged = window.tagged
    sentences = [tagged.words[start:end] for start, end in itertools.pairwise(tagged.starts)]
    served = function.answers_by_length(sentences, signature="words")
    rows = zip(sentences, served, strict=True)
    return [label.decode() for sentence, row in rows for label in row["labels"][: len(sentence)]]


def _chosen(problem, window, function):
    asked = [(row.context, row.beginning, row.choices) for row in window.examples]
    served = function.answers_by_length(*zip(*asked))
    return [row["logits"][: len(choices)] for row, (_, _, choices) in zip(served, asked, strict=True)]


def _logits(problem, window, function):
    """[examples, labels]."""
    if isinstance(problem, ContrastiveProblem):
        first, second = ([row["vectors"] for row in function.answers_by_length(column)] for column in window.texts)
        return np.sum(np.multiply(first, second), axis=1, keepdims=True)
    if isinstance(problem, SpanPairProblem):
        texts, starts, ends = columns_of(window.examples)
        served = function.answers_by_length(*texts, starts, ends)
    else:
        served = function.answers_by_length(*window.texts)
    found = [row["score" if "score" in row else "logits"] for row in served]
    if problem.head.logistic:
        found = logit(found)
    return np.reshape(found, (len(found), problem.head.num_labels))
