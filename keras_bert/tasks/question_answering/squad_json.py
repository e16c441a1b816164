"""Questions about passages with their answers, in SQuAD's JSON, which CMRC 2018 and many others use too."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from keras_bert.core.errors import UserError
from keras_bert.data.corpus.text_lines import Unreadable, read_blocks
from keras_bert.data.tables.json_rows import JsonBlocks
from keras_bert.tasks.labels import BadCell

NONE, LOST = -1, -2  # In `AnsweredQuestions.spans`.
_SHOWN = 60
_KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a whole number"}


class Answer(NamedTuple):
    """One reference answer: its text, and its start in the passage according to the file, in code points."""

    text: str
    start: int


class Question(NamedTuple):
    """One question.

    Attributes:
        id: the unique id in the file.
        text: the question.
        passage: the index of its passage in `AnsweredQuestions.passages`.
        answers: the reference answers, empty if the passage has none; None if the file does not give any.
    """

    id: str
    text: str
    passage: int
    answers: tuple[Answer, ...] | None


@dataclass(frozen=True, eq=False)
class AnsweredQuestions:
    """The n questions of a file, or of one split, in their order there.

    Attributes:
        passages: the texts, possibly some without a question.
        questions: the questions about them.
        spans: int64 `[n, 2]`, start and end in code points of the passage; `NONE` twice if there is no answer, `LOST`
            twice if the passage contains no reference answer. None if answers are hidden or not located yet.
        origin: the file or data set, for messages.
        warnings: what was skipped or looks odd, one line each.
    """

    passages: list[str]
    questions: list[Question]
    spans: np.ndarray | None
    origin: str
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.questions)


def read_squad(path: str) -> AnsweredQuestions:
    """Reads a file in the format of SQuAD 1.1 or 2.0; .gz, .bz2, .xz and .zst are detected from the content.

    `answers` may be missing, as in files to predict on. `is_impossible` may be missing too, and must not contradict
    the answers.

    Raises:
        UserError: in one line: the file cannot be read or is not JSON (with line and column); a field is missing or has
            another type (with the question's id or the place); two questions have the same id; there is no question.
    """
    passages: list[str] = []
    questions: list[Question] = []
    for passage, its_questions in squad_passages(path):
        questions += (question._replace(passage=len(passages)) for question in its_questions)
        passages.append(passage)
    check_questions(questions, path)
    return AnsweredQuestions(passages, questions, None, str(path))


def squad_passages(path: str) -> Iterator[tuple[str, list[Question]]]:
    """Iterates over (passage, its questions, with `passage` 0) while reading the file; "-" reads stdin.

    Only one passage is in memory at a time. Raises `UserError` as `read_squad` does, when it reaches the error.
    """
    try:
        yield from _passages(JsonBlocks(read_blocks(path)))
    except Unreadable as problem:
        where = f"{path} line {problem.line}" if problem.line else path
        raise UserError(f"{where}: needs JSON in UTF-8 text. Received: {problem}.") from None
    except json.JSONDecodeError as error:
        is_json = (error.lineno, error.colno) != (1, 1)
        what = error.msg if is_json else "no JSON. Give that, or JSON lines, Parquet or Arrow with a question a row"
        raise UserError(
            f"{path} line {error.lineno} column {error.colno}: needs JSON of SQuAD's format. Received: {what}."
        ) from None
    except RecursionError:
        raise UserError(f"{path}: needs JSON of SQuAD's format. Received: lists nested too deep.") from None
    except BadCell as problem:
        raise UserError(f"{path}: {problem}.") from None


def _passages(content: JsonBlocks) -> Iterator[tuple[str, list[Question]]]:
    for article in _entered(content, "data", ""):
        for place in _entered(content, "paragraphs", article):
            paragraph = _object(content.value(), place)
            passage = _text(paragraph, "context", place)
            yield passage, [_question(question, at) for question, at in _items(paragraph, "qas", place)]
    content.end()


def _entered(content: JsonBlocks, name: str, place: str) -> Iterator[str]:
    """Enters the list `name` of the next object, which is at `place`, and iterates over the places of its items.

    Each item must be read before asking for the next.
    """
    if content.kind() != "{":
        found = content.value()
        if place:
            _object(found, place)
        _field(found, name, list, place)
    names = []
    for member in content.members():
        names.append(member)
        if member != name:
            content.value()
        elif content.kind() != "[":
            _field({name: content.value()}, name, list, place)
        else:
            yield from (f"{place}.{name}[{number}]".lstrip(".") for number in content.items())
    if name not in names:
        _field(dict.fromkeys(names), name, list, place)


def check_questions(questions: list[Question], origin: str) -> None:
    """Raises `UserError` if there is no question, or if two have the same id, which identifies the answers."""
    if not questions:
        raise UserError(f"{origin}: needs at least one question. Received: none.")
    seen = set()
    for question in questions:
        if question.id in seen:
            raise UserError(second_of_id(origin, question.id))
        seen.add(question.id)


def second_of_id(origin: str, name: str) -> str:
    """The message for a second question with the same id."""
    return f"{origin}: needs a unique id for every question. Received: {name!r} twice."


def _question(values: dict[str, Any], place: str) -> Question:
    """A question, with `passage` 0."""
    name = _text(values, "id", place)
    place = f"{place} (id {name[:_SHOWN]!r})"
    text = _text(values, "question", place)
    answers = None
    if "answers" in values:
        answers = tuple(
            Answer(_text(answer, "text", answer_place), _field(answer, "answer_start", int, answer_place))
            for answer, answer_place in _items(values, "answers", place)
        )
    if "is_impossible" in values:
        is_impossible = _field(values, "is_impossible", bool, place)
        if is_impossible and answers:
            raise BadCell(f"{place}: needs no answers where is_impossible is true. Received: {len(answers)}")
        if not is_impossible and answers == ():
            raise BadCell(
                f"{place}: needs an answer where is_impossible is false, or no field 'answers' if none is known. "
                "Received: an empty list"
            )
        if is_impossible:
            answers = ()
    return Question(name, text, 0, answers)


def _items(values: dict[str, Any], name: str, place: str) -> Iterator[tuple[dict[str, Any], str]]:
    """(item, its place) of each object in a list of objects."""
    for number, item in enumerate(_field(values, name, list, place)):
        item_place = f"{place}.{name}[{number}]"
        yield _object(item, item_place), item_place


def _object(item: object, place: str) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise BadCell(f"{place}: needs an object. Received: {_shown(item)}")
    return item


def _text(values: dict[str, Any], name: str, place: str) -> str:
    """A field that is text. Raises `BadCell` for half a surrogate pair, which JSON can express but UTF-8 cannot."""
    text = _field(values, name, str, place)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadCell(
            f"{place}.{name}: needs text. Received: half a surrogate pair at character {error.start}"
        ) from None
    return text


def _field(values: object, name: str, kind: type, place: str) -> Any:
    where = f"{place}: " if place else ""
    if not isinstance(values, dict):
        raise BadCell(f"{where}needs an object with {name!r}. Received: {_shown(values)}")
    if name not in values:
        raise BadCell(f"{where}needs {name!r}. Received: {', '.join(map(repr, values)) or 'an empty object'}")
    # Not isinstance, for which true and false are integers.
    if type(values[name]) is not kind:
        raise BadCell(f"{where}{name!r} needs {_KINDS[kind]}. Received: {_shown(values[name])}")
    return values[name]


def _shown(value: object) -> str:
    if isinstance(value, (dict, list)):
        return _KINDS[type(value)]
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
