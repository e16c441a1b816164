"""Noise in questions and passages; the answers move with their passage."""

import dataclasses

import numpy as np

from keras_bert.tasks.noise.noise import Noise
from keras_bert.tasks.question_answering.answer_spans import AnsweredQuestions, found_at
from keras_bert.tasks.question_answering.squad_json import Answer


def noisy_questions(answered: AnsweredQuestions, noise: Noise) -> AnsweredQuestions:
    """The questions with noise in every text.

    A reference answer becomes what now stands in its place in the passage, so an answer taken verbatim from the noisy
    passage can still be right. Noise that would leave nothing of an answer is left out; a reference that its passage
    does not contain stays as it is.
    """
    places = [
        [found_at(answered.passages[question.passage], answer) for answer in question.answers or ()]
        for question in answered.questions
    ]
    spans: list[list[tuple[int, int]]] = [[] for _ in answered.passages]
    for question, starts in zip(answered.questions, places):
        for answer, start in zip(question.answers or (), starts):
            if start is not None:
                spans[question.passage].append((start, start + len(answer.text)))
    passages = [noise.edited(text, sorted(set(kept))) for text, kept in zip(answered.passages, spans)]

    questions, moved = [], None if answered.spans is None else answered.spans.copy()
    for number, (question, starts) in enumerate(zip(answered.questions, places)):
        passage = passages[question.passage]
        answers = None
        if question.answers is not None:
            answers = tuple(
                answer if start is None else _moved(passage.text, *passage.span(start, start + len(answer.text)))
                for answer, start in zip(question.answers, starts)
            )
        questions.append(question._replace(text=noise(question.text), answers=answers))
        if moved is not None and moved[number, 0] >= 0:
            moved[number] = np.array(passage.span(*moved[number].tolist()))
    return dataclasses.replace(
        answered, passages=[passage.text for passage in passages], questions=questions, spans=moved
    )


def _moved(passage: str, start: int, end: int) -> Answer:
    return Answer(passage[start:end], start)
