"""Judging the candidates of questions one by one, as a task for fine-tuning."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.special

from keras_bert.config.reading import HEAD_TAIL, TRUNCATE
from keras_bert.data.windows import windows
from keras_bert.tasks import superglue
from keras_bert.tasks.answer_files import json_line
from keras_bert.tasks.classification.problem import TextRowsProblem
from keras_bert.tasks.classification.questions import Question, QuestionTask, passages
from keras_bert.tasks.classification.scores import by_question, cloze_scores, judgement_scores, predictions
from keras_bert.tasks.task import Window


class QuestionWindow(Window[Question]):
    """Some of a split's questions, in whole passages."""

    @functools.cached_property
    def texts(self) -> list[list[str]]:
        """The pairs to judge, one for each candidate of each question: [passages, claims]."""
        contexts = [question.context for question in self.examples for _ in question.candidates]
        return [contexts, [claim for question in self.examples for claim in question.claims]]

    @functools.cached_property
    def labels(self) -> np.ndarray | None:
        """int32 [candidates]: whether each candidate is right; None if hidden."""
        found = [label for question in self.examples for label in question.labels or ()]
        return np.array(found, np.int32) if found else None


class QuestionProblem(TextRowsProblem):
    """A `QuestionTask`. The answers are float64 [candidates, 2], the logits of each candidate of all questions.

    A row is [CLS] passage [SEP] question candidate [SEP] (Wang et al. 2019, section 4.1). In training, each candidate
    is an example of its own, labelled True or False. For a cloze, the most probable candidate is chosen.

    Raises:
        UserError: examples are malformed, or settings do not fit.
    """

    long = (TRUNCATE, HEAD_TAIL)

    task: QuestionTask

    def windows(self, split: str, labelled: bool = False) -> Iterator[QuestionWindow]:
        origin, by_passage = passages(self.task, split, self._source, labelled)
        for window in windows(by_passage, _characters):
            yield QuestionWindow([question for questions in window for question in questions], origin)

    def lines(self, split: str, window: QuestionWindow, answers: np.ndarray) -> Iterator[str]:
        """The lines of a submission or, without one, a JSON object per question, with its candidates."""
        return (self._submission if self.submission(split) else self._lines)(window.examples, answers)

    def evaluate(self, split: str, answers: np.ndarray) -> dict[str, float]:
        labels, questions = self._labels(split), self._questions(split)
        if self.task.is_cloze:
            return cloze_scores(questions, _chosen(questions, answers))
        return judgement_scores(questions, labels, predictions(self.head, answers))

    def baseline(self, split: str) -> dict[str, float]:
        """The scores of the most frequent label in training; for a cloze, of the passage's most named candidate."""
        questions = self._questions(split)
        if self.task.is_cloze:
            counts = [
                np.array([question.context.count(name) for name in question.candidates]) for question in questions
            ]
            return cloze_scores(questions, [int(count.argmax()) for count in counts])
        labels = self._labels(split)
        most_frequent = np.bincount(self._labels("train")).argmax()
        return judgement_scores(questions, labels, np.full_like(labels, most_frequent))

    def by_example(self, split: str, answers: np.ndarray) -> dict[str, np.ndarray]:
        return {}  # The examples are candidates, but scores are per question.

    def remarks(self, split: str, answers: np.ndarray) -> Iterator[str]:
        return iter(()) if self.task.is_cloze else super().remarks(split, answers)

    def _questions(self, split: str) -> list[Question]:
        """The questions of a split, read again for scoring, because training does not keep their texts."""

        def read() -> list[Question]:
            _, found = passages(self.task, split, self._source)
            return [question for questions in found for question in questions]

        return self._once(("questions", split), read)

    def _submission(self, questions: Sequence[Question], logits: np.ndarray) -> Iterator[str]:
        if self.task.is_cloze:
            texts = [question.candidates[index] for question, index in zip(questions, _chosen(questions, logits))]
            yield from superglue.answer_lines([question.number for question in questions], texts)
            return
        by_passage: dict[int, list[dict[str, Any]]] = {}
        for question, judged in zip(questions, by_question(questions, predictions(self.head, logits))):
            answers = [
                {"idx": idx, "label": label} for idx, label in zip(question.numbers, judged.tolist(), strict=True)
            ]
            by_passage.setdefault(question.passage, []).append({"idx": question.number, "answers": answers})
        for passage, judged_questions in by_passage.items():
            yield json_line({"idx": passage, "passage": {"questions": judged_questions}})

    def _lines(self, questions: Sequence[Question], logits: np.ndarray) -> Iterator[str]:
        probabilities = scipy.special.softmax(logits, axis=1)[:, 1]
        parts = (by_question(questions, values) for values in (predictions(self.head, logits), probabilities))
        for question, judged, probable in zip(questions, *parts, strict=True):
            chosen = {"label": question.candidates[int(probable.argmax())]} if self.task.is_cloze else {}
            candidates = [
                {"text": text, **({} if chosen else {"label": label}), "probability": probability}
                for text, label, probability in zip(question.candidates, judged.tolist(), probable.tolist())
            ]
            row = {"passage": question.passage, "idx": question.number, "question": question.query, **chosen}
            yield json_line({**row, "candidates": candidates})


def _chosen(questions: Sequence[Question], logits: np.ndarray) -> list[int]:
    """The index of the most probable candidate of each question, the first in a tie."""
    return [int(part.argmax()) for part in by_question(questions, logits[:, 1] - logits[:, 0])]


def _characters(questions: Sequence[Question]) -> int:
    """The number of characters in the pairs of a passage's questions."""
    return sum(len(question.candidates) * (len(question.context) + len(question.query)) for question in questions)
