"""The scores of MultiRC and ReCoRD, by question."""

from collections.abc import Iterator, Sequence

import numpy as np
import sklearn.metrics

from keras_bert.tasks.classification.questions import Question
from keras_bert.tasks.question_answering.squad_scores import squad_v1_scores


def by_question(questions: Sequence[Question], values: np.ndarray) -> Iterator[np.ndarray]:
    """Parts of an array [candidates, …]: those of the candidates of each question."""
    ends = np.cumsum([len(question.candidates) for question in questions])
    return iter(np.split(values, ends[:-1]))


def judgement_scores(questions: Sequence[Question], labels: np.ndarray, judged: np.ndarray) -> dict[str, float]:
    """MultiRC's scores (Khashabi et al. 2018): F1 over all answers, and the share of questions without a mistake.

    Args:
        questions: the questions.
        labels, judged: int [candidates] of 0 and 1.
    """
    right = [
        bool((part == own).all()) for part, own in zip(by_question(questions, judged), by_question(questions, labels))
    ]
    f1a = sklearn.metrics.f1_score(labels, judged, zero_division=0.0)
    return {"f1a": float(f1a), "exact": float(np.mean(right))}


def cloze_scores(questions: Sequence[Question], chosen: Sequence[int]) -> dict[str, float]:
    """ReCoRD's scores (Zhang et al. 2018): F1 and exact match as for SQuAD, against the best of the right answers.

    Args:
        questions: the questions.
        chosen: the index of the candidate chosen for each.
    """
    names = [f"{question.passage} {question.number}" for question in questions]
    references = dict(zip(names, (question.references for question in questions)))
    answers = {name: question.candidates[index] for name, question, index in zip(names, questions, chosen)}
    found = squad_v1_scores(references, answers)
    return {"f1": found["f1"] / 100, "exact": found["exact_match"] / 100}
