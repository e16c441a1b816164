"""The questions of a split, from files or TensorFlow Datasets, with the span of each answer in its passage."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from keras_bert.config.pretraining import TFDS_PREFIX
from keras_bert.core.errors import MissingData, UserError
from keras_bert.data.corpus.held_out import HashSet, is_validation, text_hash
from keras_bert.data.corpus.text_lines import plain_ending
from keras_bert.data.tables.rows import Reading, Row
from keras_bert.data.tables.tables import is_data_set, is_table, named_files, open_table
from keras_bert.data.windows import windows
from keras_bert.tasks.labels import BadCell, bad_cell_at, check_text, is_whole
from keras_bert.tasks.noise import Noise
from keras_bert.tasks.question_answering.squad_json import (
    LOST,
    NONE,
    Answer,
    AnsweredQuestions,
    Question,
    check_questions,
    read_squad,
    second_of_id,
    squad_passages,
)
from keras_bert.tasks.question_answering.task import CHARACTERS, SpanTask
from keras_bert.tasks.sources import Source, TfdsSource, needs_files, split_file
from keras_bert.tasks.task import INPUT, Split

_IN_ANSWERS = ("text", "answer_start")
_IN_TFDS = ("id", "question", "context", *(f"answers/{name}" for name in _IN_ANSWERS))


def load_questions(task: SpanTask, split: str, source: Source = "") -> AnsweredQuestions:
    """Reads the questions of one split and locates their answers.

    An answer is where its file says or else at the nearest place with the same text. The first reference that is found
    in the passage is the one to train on. Questions whose answer is not found are skipped in training splits; in others
    they stay and are scored against their references.

    Args:
        task: a task for which it is known whether questions may be unanswerable (`with_unanswerable`).

    Raises:
        UserError: there is no such split or file, or it is malformed (see `read_squad`) or has no questions; in a split
            to evaluate on, a question has no answer although the task has no unanswerable ones; or no question can be
            trained on.
    """
    if task.unanswerable is None:
        raise ValueError(f"{task.name}: needs to know of unanswerable questions. Call with_unanswerable first.")
    read = _read(task, split, source)
    labelled = task.splits[split].labelled
    if labelled is None:
        labelled = all(
            question.answers or (task.unanswerable and question.answers == ()) for question in read.questions
        )
    if not labelled:
        return read
    for question in read.questions:
        if question.answers is None:
            raise UserError(f"{read.origin}: needs 'answers' for every question. Received: {question.id!r} without.")
    training = split.startswith("train")
    unanswered = [question.id for question in read.questions if not question.answers]
    if unanswered and not task.unanswerable and not training:
        raise UserError(
            f"{read.origin}: needs an answer to every question, as {task.name} has no unanswerable ones. "
            f"Received: {count_of('questions without', unanswered)}. Give squad_v2, or a file with answers."
        )
    spans, warnings = _locate(read)
    if training:
        is_kept = spans[:, 0] >= (NONE if task.unanswerable else 0)
        if not is_kept.all():
            skipped = [question.id for question, kept in zip(read.questions, is_kept) if not kept]
            warnings.append(count_of("skipped questions without an answer to train on", skipped))
        if not is_kept.any():
            raise UserError(f"{read.origin}: needs questions to train on. Received: {'; '.join(warnings)}.")
        read = replace(read, questions=[question for question, kept in zip(read.questions, is_kept) if kept])
        spans = spans[is_kept]
    return replace(read, spans=spans, warnings=tuple(f"{read.origin}: {warning}" for warning in warnings))


def asked_questions(task: SpanTask, split: str, source: Source = "") -> Iterator[AnsweredQuestions]:
    """Yields the questions of one split, some thousand at a time, without answers.

    Arguments and errors as for `load_questions`; "-" as the split's file is stdin.
    """
    asked = _with_passages(task, split, source)
    for window in windows(asked, lambda pair: len(pair[0]) + len(pair[1].id) + len(pair[1].text)):
        numbers: dict[str, int] = {}
        questions = [
            question._replace(passage=numbers.setdefault(passage, len(numbers)), answers=None)
            for passage, question in window
        ]
        yield AnsweredQuestions(list(numbers), questions, None, f"{task.name} {split}")


def _with_passages(task: SpanTask, split: str, source: Source) -> Iterator[tuple[str, Question]]:
    """Yields (passage, question) for the questions of one split; answers are ignored."""
    wanted = task.splits.get(split)
    [own] = wanted.files if wanted and split == INPUT else [None]
    if wanted is None or isinstance(source, TfdsSource) or _is_table(own or wanted.files[0]):
        read = _read_table(own, answers=False) if own else _read(task, split, source)
        yield from ((read.passages[question.passage], question) for question in read.questions)
        return
    path = own or split_file(task, split, source)
    names, is_empty = HashSet(), True
    for passage, questions in squad_passages(path):
        if wanted.side and is_validation(passage, task.dev_share) != (wanted.side == "dev"):
            continue
        for question in questions:
            if not names.add(text_hash(question.id)):
                raise UserError(second_of_id(path, question.id))
            is_empty = False
            yield passage, question
    if is_empty:
        raise UserError(f"{path}: needs at least one question. Received: none.")


def with_unanswerable(task: SpanTask, source: Source = "") -> SpanTask:
    """The task with `unanswerable` set: whether the training split, or else the first, has an unanswerable question.

    Tasks scored by characters have none. Raises `UserError` as `load_questions` does.
    """
    if task.unanswerable is not None:
        return task
    if task.scoring == CHARACTERS:
        return replace(task, unanswerable=False)
    if not task.splits:
        raise MissingData(f"{task.name}: needs files. Received: none. Give --train and --dev.")
    read = _read(task, "train" if "train" in task.splits else next(iter(task.splits)), source)
    return replace(task, unanswerable=any(question.answers == () for question in read.questions))


def _read(task: SpanTask, name: str, source: Source) -> AnsweredQuestions:
    """A split's questions; only those of its own side if two splits share a file."""
    if name not in task.splits:
        raise UserError(f"{task.name}: needs one of its splits {', '.join(task.splits)}. Received: {name!r}.")
    split = task.splits[name]
    if isinstance(source, TfdsSource):
        return _read_tfds(task, split, source)
    path = split_file(task, name, source)
    read = _read_table(path) if _is_table(path) else read_squad(path)
    if split.side is None:
        return read
    wanted = [is_validation(passage, task.dev_share) == (split.side == "dev") for passage in read.passages]
    place = np.cumsum(wanted) - 1
    questions = [
        question._replace(passage=int(place[question.passage]))
        for question in read.questions
        if wanted[question.passage]
    ]
    if not questions:
        raise UserError(
            f"{read.origin}: needs enough passages to hold out a share of {task.dev_share} for evaluation. Received: "
            f"none for the {split.side} part. Give a dev file, or more passages."
        )
    return replace(read, passages=[passage for passage, own in zip(read.passages, wanted) if own], questions=questions)


def _read_tfds(task: SpanTask, split: Split, source: TfdsSource) -> AnsweredQuestions:
    if task.tfds is None or split.tfds is None:
        raise needs_files(task.name, (split.files[0] for split in task.splits.values()))
    table = source.table(task.tfds)
    return _from_rows(table.examples(split.tfds, _IN_TFDS), f"{table.name} {split.tfds}")


def _is_table(path: str) -> bool:
    """Whether a file is a table with a row for each question, not SQuAD's JSON."""
    if is_data_set(path):
        return True
    may_be_squad = any(plain_ending(file) in ("", ".json") for file in named_files(path))
    return not may_be_squad and is_table(path, of_lists=True)


def _read_table(source: str, answers: bool = True) -> AnsweredQuestions:
    """The questions of a table, with their answers if these are asked for."""
    table = open_table(source)
    if source.startswith(TFDS_PREFIX):
        return _from_rows(table.rows(Reading(_IN_TFDS)), table.name)
    rows = table.rows(Reading(("id", "question", "context"), ("answers",) if answers else ()))
    return _from_rows((row._replace(cells=(*row.cells[:3], *_listed(row))) for row in rows), table.name)


def _listed(row: Row) -> tuple[Any, Any]:
    """(the texts of a row's answers, their starts); (None, None) for a row without answers."""
    answers = row.cells[3] if len(row.cells) > 3 else None
    if answers is None:
        return None, None
    if not isinstance(answers, dict) or not all(isinstance(answers.get(name), list) for name in _IN_ANSWERS):
        raise UserError(f"{row.place}: needs answers with lists of text and answer_start. Received: {answers!r:.60}.")
    return answers["text"], answers["answer_start"]


def _start(cell: object) -> int:
    """Where an answer starts; tables may have whole numbers as 3.0. Raises `BadCell`."""
    start = int(cell) if isinstance(cell, float) and cell.is_integer() else cell
    if not is_whole(start):
        raise BadCell(f"needs an answer_start that is a whole number. Received: {cell!r}")
    return start


def _from_rows(rows: Iterable[Row], origin: str) -> AnsweredQuestions:
    passages: dict[str, int] = {}
    questions = []
    for row in rows:
        name, text, passage, texts, starts = row.cells
        with bad_cell_at(row.place):
            answers = None
            if texts is not None:
                if len(texts) != len(starts):
                    raise BadCell(f"needs an answer_start for each answer. Received: {len(starts)} of {len(texts)}")
                answers = tuple(
                    Answer(check_text(text, "answers that are text"), _start(start))
                    for text, start in zip(texts, starts)
                )
            for cell in (name, text, passage):
                check_text(cell)
        questions.append(Question(name, text, passages.setdefault(passage, len(passages)), answers))
    check_questions(questions, origin)
    return AnsweredQuestions(list(passages), questions, None, origin)


def _locate(read: AnsweredQuestions) -> tuple[np.ndarray, list[str]]:
    """(spans int64 [n, 2], warnings) of questions whose answers are given."""
    spans = np.full((len(read.questions), 2), NONE, np.int64)
    lost, moved = [], []
    for span, question in zip(spans, read.questions):
        passage, found = read.passages[question.passage], None
        for answer in question.answers or ():
            start = found_at(passage, answer)
            if start is None:
                lost.append(question.id)
            elif start != answer.start:
                moved.append(question.id)
            if found is None and start is not None:
                found = start, start + len(answer.text)
        if question.answers:
            span[:] = found or LOST
    warnings = []
    if lost:
        warnings.append(count_of("answers that are not in their passage", lost))
    if moved:
        warnings.append(count_of("answers that are not at answer_start, taken from the nearest place", moved))
    return spans, warnings


def found_at(passage: str, answer: Answer) -> int | None:
    """The start of an answer in its passage, or None. Mere white space is not an answer."""
    text, start = answer
    if not text.strip():
        return None
    if start >= 0 and passage.startswith(text, start):
        return start
    before = passage.rfind(text, 0, max(start, 0) + len(text))
    after = passage.find(text, max(start, 0))
    found = [place for place in (before, after) if place >= 0]
    return min(found, key=lambda place: abs(place - start)) if found else None


def count_of(what: str, ids: Sequence[str]) -> str:
    """A text that says `what` the questions are, how many there are, and which is the first."""
    return f"{what}: {len(ids):,} (the first: {ids[0]!r})"


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
    return replace(answered, passages=[passage.text for passage in passages], questions=questions, spans=moved)


def _moved(passage: str, start: int, end: int) -> Answer:
    return Answer(passage[start:end], start)
