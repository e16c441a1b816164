"""Questions on passages whose candidate answers are judged one by one (MultiRC, ReCoRD), from files and TFDS."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from keras_bert.core.errors import UserError
from keras_bert.data.tables.rows import Row
from keras_bert.data.tables.tables import read_table
from keras_bert.tasks import superglue
from keras_bert.tasks.labels import BadCell, bad_cell_at, check_text, is_whole
from keras_bert.tasks.sources import Source, TfdsSource, split_file
from keras_bert.tasks.task import Task


@dataclass(frozen=True)
class QuestionTask(Task):
    """A task on pairs of a passage and a question with one candidate, scored per question.

    Attributes:
        is_cloze: whether one candidate is chosen, to fill a gap in the query; otherwise any number may be right.
    """

    is_cloze: bool = False


_TEXTS = ("passage", "question")
MULTIRC = superglue.new_task(QuestionTask, "multirc", texts=_TEXTS)
RECORD = superglue.new_task(QuestionTask, "record", texts=_TEXTS, is_cloze=True)
QUESTION_TASKS = {task.name: task for task in (MULTIRC, RECORD)}


PLACEHOLDER = "@placeholder"


@dataclass(frozen=True)
class Question:
    """A question with its n candidates.

    Attributes:
        passage: the number of its passage.
        number: its own number.
        context: the passage.
        query: the question, or a sentence with `PLACEHOLDER` where a candidate belongs.
        candidates: n texts, answers or entities.
        numbers: the number of each candidate in a submission; empty if the candidates have none.
        labels: whether each candidate is right; None if hidden.
        references: the right answers, to score a cloze's chosen candidate against; empty if hidden or not a cloze.
    """

    passage: int
    number: int
    context: str
    query: str
    candidates: Sequence[str]
    numbers: Sequence[int]
    labels: Sequence[bool] | None
    references: Sequence[str] = ()

    @property
    def claims(self) -> list[str]:
        """The text to judge for each candidate, which replaces the query's `PLACEHOLDER` or else follows the query."""
        if PLACEHOLDER in self.query:
            return [self.query.replace(PLACEHOLDER, candidate) for candidate in self.candidates]
        return [f"{self.query} {candidate}" for candidate in self.candidates]


def passages(
    task: QuestionTask, split: str, source: Source, labelled: bool = True
) -> tuple[str, Iterator[list[Question]]]:
    """(the file or data set, for messages; an iterator over the lists of questions of each passage).

    Args:
        labelled: whether to read labels and right answers; those of TFDS are always read.

    Raises:
        UserError: the examples cannot be read; also while iterating, naming the line.
    """
    if isinstance(source, TfdsSource):
        return _tfds_passages(task, split, source)
    path = split_file(task, split, source)
    columns = ("idx", "passage", "qas") if task.is_cloze else ("idx", "passage")
    rows = read_table(path, columns, format="jsonl")
    return path, _checked(path, (_file_questions(task, row, labelled) for row in rows))


def _file_questions(task: QuestionTask, row: Row, labelled: bool) -> list[Question]:
    read = _cloze_questions if task.is_cloze else _answered_questions
    with bad_cell_at(row.place):
        return list(read(*row.cells, labelled=labelled))


def _answered_questions(idx: object, passage: object, *, labelled: bool) -> Iterator[Question]:
    """The questions of a line of MultiRC."""
    number, context = _number(idx, "idx"), _text(passage, "text", "passage")
    for question in _objects(passage, "questions", "passage"):
        answers = _objects(question, "answers", "question")
        if not answers:
            raise BadCell("needs at least one answer for every question. Received: none")
        labels = [_label(answer["label"]) for answer in answers if labelled and "label" in answer]
        if labels and len(labels) < len(answers):
            raise BadCell("needs a label for every answer of a question. Received: some without")
        yield Question(
            number,
            _number(question.get("idx"), "idx of a question"),
            context,
            _text(question, "question", "question"),
            [_text(answer, "text", "answer") for answer in answers],
            [_number(answer.get("idx"), "idx of an answer") for answer in answers],
            labels or None,
        )


def _cloze_questions(idx: object, passage: object, qas: object, *, labelled: bool) -> Iterator[Question]:
    """The questions of a line of ReCoRD, whose candidates are the distinct texts of the passage's entities."""
    number, context = _number(idx, "idx"), _text(passage, "text", "passage")
    entities = [_entity_text(entity, context) for entity in _objects(passage, "entities", "passage")]
    for question in _objects({"qas": qas}, "qas", "line"):
        has_answers = labelled and "answers" in question
        answers = _objects(question, "answers", "question") if has_answers else []
        references = [_text(answer, "text", "answer") for answer in answers]
        query = _text(question, "query", "question")
        yield _cloze(number, _number(question.get("idx"), "idx of a question"), context, query, entities, references)


def _cloze(
    passage: int, number: int, context: str, query: str, entities: Iterable[str], references: Iterable[str]
) -> Question:
    if PLACEHOLDER not in query:
        raise BadCell(f"needs {PLACEHOLDER} in every query. Received: {query[:80]!r}")
    candidates, right = sorted(set(entities)), sorted(set(references))
    if not candidates:
        raise BadCell("needs at least one entity for every query. Received: none")
    labels = [candidate in right for candidate in candidates] if right else None
    return Question(passage, number, context, query, candidates, (), labels, right)


def _tfds_passages(task: QuestionTask, split: str, source: TfdsSource) -> tuple[str, Iterator[list[Question]]]:
    assert task.tfds is not None
    table, name = source.table(task.tfds.name), str(task.splits[split].tfds)
    origin = f"{table.name} {name}"
    if task.is_cloze:
        columns = ("idx/passage", "idx/query", "passage", "query", "entities", "answers")
        clozes = (
            _cloze(*row)
            for row in sorted((row.cells for row in table.examples(name, columns)), key=lambda cells: cells[:2])
        )
        return origin, _checked(origin, ([question] for question in clozes))
    named = ("idx/paragraph", "idx/question", "idx/answer", "paragraph", "question", "answer", "label")
    rows = sorted((row.cells for row in table.examples(name, named)), key=lambda cells: cells[:3])
    by_question = [list(group) for _, group in itertools.groupby(rows, lambda cells: cells[:2])]
    by_passage = itertools.groupby(map(_from_tfds, by_question), lambda question: question.passage)
    return origin, _checked(origin, (list(group) for _, group in by_passage))


def _from_tfds(rows: Sequence[Sequence[Any]]) -> Question:
    """A question of MultiRC from the rows of its answers."""
    passages, questions, numbers, contexts, queries, answers, labels = zip(*rows)
    hidden = None in labels
    right = None if hidden else [label == "True" for label in labels]
    return Question(passages[0], questions[0], contexts[0], queries[0], answers, numbers, right)


def _checked(origin: str, found: Iterable[list[Question]]) -> Iterator[list[Question]]:
    """Yields the passages that have questions. Raises `UserError` if none has, or only some questions have labels."""
    first: Question | None = None
    for questions in found:
        for question in questions:
            first = first or question
            if (question.labels is None) != (first.labels is None):
                raise UserError(
                    f"{origin} question {question.number}: needs labels for all questions or for none. "
                    f"Received: {'none' if question.labels is None else 'some'}, unlike question {first.number}."
                )
        if questions:
            yield questions
    if first is None:
        raise UserError(f"{origin}: needs at least one question. Received: none.")


def _objects(value: object, name: str, what: str) -> list[dict[str, Any]]:
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise BadCell(f"needs a list of objects {name!r} in a {what}. Received: {found!r:.80}")
    return found


def _text(value: object, name: str, what: str) -> str:
    return check_text(value.get(name) if isinstance(value, dict) else None, f"a text {name!r} in a {what}")


def _number(value: object, what: str) -> int:
    if not is_whole(value):
        raise BadCell(f"needs a whole number as {what}. Received: {value!r}")
    return value


def _label(value: object) -> bool:
    if value not in (0, 1):
        raise BadCell(f"needs a label 0 or 1. Received: {value!r}")
    return bool(value)


def _entity_text(entity: dict[str, Any], context: str) -> str:
    """The text of an entity, whose `end` is inclusive."""
    start, end = (_number(entity.get(name), f"{name} of an entity") for name in ("start", "end"))
    if not 0 <= start <= end < len(context):
        raise BadCell(f"needs entities within the {len(context)} characters of its passage. Received: {start} to {end}")
    return context[start : end + 1]
