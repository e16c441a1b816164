"""Questions over passages with their answers, in the JSON of SQuAD, which CMRC 2018 and many others share."""

import json
from dataclasses import dataclass
from typing import NamedTuple

from keras_bert.data.json_blocks import JsonBlocks
from keras_bert.data.text_lines import Unreadable, read_blocks
from keras_bert.errors import UserError

_SHOWN = 60
_KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a whole number"}


class Answer(NamedTuple):
    """One reference: the text, and the code point of the passage at which the file says it begins."""

    text: str
    start: int


class Question(NamedTuple):
    """One question.

    Attributes:
        id: as the file has it; no other question has it.
        text: the question.
        passage: the place of its passage in `QuestionSet.passages`.
        answers: the references, none where the passage holds no answer; None where the file does not tell.
    """

    id: str
    text: str
    passage: int
    answers: tuple[Answer, ...] | None


@dataclass(frozen=True, eq=False)
class QuestionSet:
    """Questions in their file's order.

    Attributes:
        passages: texts, some with no question, perhaps.
        questions: list of `Question`s.
        origin: the file or data set, for messages.
    """

    passages: list[str]
    questions: list[Question]
    origin: str


def read_squad(path):
    """The `QuestionSet` of a file of SQuAD 1.1's or 2.0's format; .gz, .bz2 and .xz are judged by content.

    `answers` may be missing, as in files to predict on; `is_impossible` may be, too, and must not contradict it.

    Raises:
        UserError: in one line: the file cannot be read or is no JSON (with line and column), a field is missing or
            of another kind (with the question's id or the place), two questions have one id, there is no question.
    """
    passages, questions = [], []
    for passage, of_passage in squad_passages(path):
        questions += (question._replace(passage=len(passages)) for question in of_passage)
        passages.append(passage)
    check_questions(questions, path)
    return QuestionSet(passages, questions, str(path))


def squad_passages(path):
    """Iterates over (passage, list of its `Question`s, whose `passage` is 0) as they come; "-" is what comes in.

    Of a file of any size a passage is in memory at a time. Raises `UserError` as `read_squad`, at the place where
    something is wrong.
    """
    try:
        yield from _passages(JsonBlocks(read_blocks(path)))
    except Unreadable as problem:
        where = f"{path} line {problem.line}" if problem.line else path
        raise UserError(f"{where}: needs JSON in UTF-8 text. Received: {problem}.") from None
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path} line {error.lineno} column {error.colno}: needs JSON of SQuAD's format. Received: {error.msg}."
        ) from None
    except RecursionError:
        raise UserError(f"{path}: needs JSON of SQuAD's format. Received: lists too deep to be read.") from None
    except BadField as problem:
        raise UserError(f"{path}: {problem}.") from None


def _passages(content):
    for article in _entered(content, "data", ""):
        for place in _entered(content, "paragraphs", article):
            paragraph = _object(content.value(), place)
            passage = checked_text(_field(paragraph, "context", str, place), f"{place}.context")
            yield passage, [_question(question, at, 0) for question, at in _items(paragraph, "qas", place)]
    content.end()


def _entered(content, name, place):
    """Iterates over the places of the items in a list that the next object, of this place, has under a name.

    Each item must be read before the next is asked for.
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


class BadField(Exception):
    """What is wrong with a field, its place included; the reader knows the file."""


def check_questions(questions, origin):
    """Raises `UserError` where there is no question or two have one id: answers are known by it."""
    if not questions:
        raise UserError(f"{origin}: needs one question or more. Received: none.")
    seen = set()
    for question in questions:
        if question.id in seen:
            raise UserError(second_of_id(origin, question.id))
        seen.add(question.id)


def second_of_id(origin, name):
    """What is said of a second question of one id."""
    return f"{origin}: needs an id of its own for every question. Received: {name!r} twice."


def checked_text(text, place):
    """The text itself. Raises `BadField` for half a surrogate pair, which JSON can say and UTF-8 cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadField(f"{place}: needs text. Received: half a surrogate pair at character {error.start}") from None
    return text


def _question(values, place, passage):
    name = checked_text(_field(values, "id", str, place), f"{place}.id")
    place = f"{place} (id {name[:_SHOWN]!r})"
    text = checked_text(_field(values, "question", str, place), f"{place}.question")
    answers = None
    if "answers" in values:
        answers = tuple(
            Answer(
                checked_text(_field(answer, "text", str, answer_place), f"{answer_place}.text"),
                _field(answer, "answer_start", int, answer_place),
            )
            for answer, answer_place in _items(values, "answers", place)
        )
    if "is_impossible" in values:
        if _field(values, "is_impossible", bool, place) and answers:
            raise BadField(f"{place}: needs no answers where is_impossible is true. Received: {len(answers)}")
        if values["is_impossible"]:
            answers = ()
    return Question(name, text, passage, answers)


def _items(values, name, place):
    """(item, its place) of each object in a list of objects."""
    for number, item in enumerate(_field(values, name, list, place)):
        item_place = f"{place}.{name}[{number}]"
        yield _object(item, item_place), item_place


def _object(item, place):
    if not isinstance(item, dict):
        raise BadField(f"{place}: needs an object. Received: {_shown(item)}")
    return item


def _field(values, name, kind, place):
    where = f"{place}: " if place else ""
    if not isinstance(values, dict):
        raise BadField(f"{where}needs an object with {name!r}. Received: {_shown(values)}")
    if name not in values:
        raise BadField(f"{where}needs {name!r}. Received: {', '.join(map(repr, values)) or 'an empty object'}")
    # Not isinstance: true and false are whole numbers to it.
    if type(values[name]) is not kind:
        raise BadField(f"{where}{name!r} needs {_KINDS[kind]}. Received: {_shown(values[name])}")
    return values[name]


def _shown(value):
    if isinstance(value, (dict, list)):
        return _KINDS[type(value)]
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
