"""Converts label cells to the arrays that a head is trained on."""

import contextlib
import decimal
import json
import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from decimal import Decimal
from typing import Any, TypeGuard

import numpy as np

from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION
from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import parse_json
from keras_bert.tasks.task import Task

_SHOWN = 20
_LARGEST = float(np.finfo(np.float32).max)  # A larger number becomes infinity in an array of labels.
_PYTHON = re.compile(r"\s*[\[({]\s*['\"]")  # A list, tuple or set of texts as Python prints it; not JSON.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


class BadCell(Exception):
    """An invalid cell; the message says what is wrong, `bad_cell_at` adds where."""


@contextlib.contextmanager
def bad_cell_at(place: str) -> Iterator[None]:
    """A block that reads the cells of a row at this place; a `BadCell` becomes a `UserError`, which names the place."""
    try:
        yield
    except BadCell as problem:
        raise UserError(f"{place}: {problem}.") from None


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number; booleans, which are ints in Python, are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_missing(value: object) -> bool:
    """Whether a table has no value for a cell: None, or NaN, which pandas and polars have for a missing number."""
    return value is None or isinstance(value, float) and math.isnan(value)


def check_text(cell: object, needed: str = "text") -> str:
    """Returns the cell if it is a string that UTF-8 can encode; else raises `BadCell`, whose message names `needed`."""
    if not isinstance(cell, str):
        raise BadCell(f"needs {needed}. Received: {cell!r}")
    try:
        cell.encode("utf-8")
    except UnicodeEncodeError:
        raise BadCell(f"needs {needed}. Received: half a surrogate pair in {cell[:40]!r}") from None
    return cell


class LabelReader:
    """Reads the label cells of one task.

    Args:
        task: a task whose labels are known.
        words: the word for each label, in the order of `task.labels`; by default `task.written` or the labels' names.
    """

    def __init__(self, task: Task, words: Sequence[str] | None = None):
        self._task = task
        self._words = words or task.written or task.labels or ()
        self._find = label_finder(self._words)

    def read(self, value: object) -> int | float | list[int]:
        """A label's id, the list of ids (multi-label) or the number (regression). Raises `BadCell`."""
        if self._task.kind == REGRESSION:
            return _number(value, self._task.label_range)
        ids = [self._id(word) for word in label_words(self._task, value)]
        return ids if self._task.kind == MULTI_LABEL else ids[0]

    def array(self, labels: Sequence[Any]) -> np.ndarray:
        """n results of `read`: int32 `[n]`, regression float32 `[n]`, multi-label float32 `[n, labels]`."""
        if self._task.kind == REGRESSION:
            return np.asarray(labels, np.float32)
        if self._task.kind != MULTI_LABEL:
            return np.asarray(labels, np.int32)
        array = np.zeros((len(labels), len(self._words)), np.float32)
        for row, ids in zip(array, labels):
            row[ids] = 1.0
        return array

    def _id(self, word: str) -> int:
        id = self._find(self._task.also_written.get(word, word))
        if id is None:
            known = ", ".join(self._words[:_SHOWN]) + (", …" if len(self._words) > _SHOWN else "")
            raise BadCell(f"needs a known label, one of {known}. Received: {word[:80]!r}")
        return id


def label_words(task: Task, value: object) -> list[str]:
    """The words in a label cell: one or, in a multi-label task, any number. Raises `BadCell`.

    Several words are in a JSON list or separated by the task's separator. Numbers, true and false count as words.
    """
    if task.kind != MULTI_LABEL:
        return [_word(value)]
    if isinstance(value, str):
        listed = _json_list(value)
        if listed is None and _PYTHON.match(value):
            raise BadCell(f"needs labels separated by {task.separator!r}, or a list in JSON. Received: {value[:80]!r}")
        value = [word for word in value.split(task.separator) if word.strip()] if listed is None else listed
    if not isinstance(value, list):
        raise BadCell(f"needs a list of labels. Received: {value!r}")
    if len(set(map(repr, value))) < len(value) and not any(isinstance(word, str) for word in value):
        # One for each label, as scikit-learn's MultiLabelBinarizer gives: "1" and "0" would be the labels.
        raise BadCell(f"needs the names of labels, each once. Received: {value!r:.80}")
    return [_word(word) for word in value]


def sorted_labels(words: Collection[str]) -> tuple[str, ...]:
    """The labels in order: as text or, if all are numbers, by value. Of several words for a label, the shortest."""
    key, found = _sameness(words), dict[Any, str]()
    for word in sorted(words, key=lambda word: (len(word), word)):
        found.setdefault(key(word), word)
    order: Any = key if key is _value else None
    return tuple(sorted(found.values(), key=order))


def label_finder(labels: Sequence[str]) -> Callable[[str], int | None]:
    """Function (word) -> the index of its label, or None; the word may be written in another way (`_sameness`)."""
    ids, key = {label: id for id, label in enumerate(labels)}, _sameness(labels)
    others = {key(label): id for label, id in ids.items()}
    if len(others) < len(ids):  # The trained model distinguishes what is one label now.
        others = {}
    return lambda word: ids[word] if word in ids else others.get(key(word))


def _sameness(words: Collection[str]) -> Callable[[str], Any]:
    """Function (word) -> a value that is the same for every way to write one of these labels.

    If all are numbers, 1, 01 and 1.0 are one label; if all are true or false, so are true and True. Of other texts,
    accents may be written in either form of Unicode.
    """
    for key in (_value, _truth):
        if all(key(word) is not None for word in words):
            return key
    return lambda word: unicodedata.normalize("NFC", word)


def _value(word: str) -> Decimal | None:
    """The exact number that a word spells; None if it is not a number."""
    try:
        return Decimal(word) if _NUMBER.fullmatch(word) else None
    except decimal.InvalidOperation:  # An exponent beyond its range.
        return None


def _truth(word: str) -> str | None:
    """The word in lower case if it is true or false; else None."""
    return word.lower() if word.lower() in ("true", "false") else None


def _json_list(cell: str) -> list[Any] | None:
    try:
        value = parse_json(cell) if cell.lstrip().startswith("[") else None
    except ValueError:
        return None
    return value if isinstance(value, list) else None


def _word(value: object) -> str:
    if isinstance(value, (bool, int, float)) and not is_missing(value):
        value = json.dumps(value)
    word = value.strip() if isinstance(value, str) else ""
    if not word:
        raise BadCell(f"needs a label. Received: {value!r}")
    if "\n" in word or "\r" in word:  # Files of labels have one per line.
        raise BadCell(f"needs a label without line breaks. Received: {word[:80]!r}")
    return word


def _number(value: Any, limits: tuple[float, float] | None) -> float:
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise BadCell(f"needs a number as its label. Received: {value!r:.80}")
    least, most = limits or (-_LARGEST, _LARGEST)
    if not least <= number <= most:
        raise BadCell(f"needs a label from {least:g} to {most:g}. Received: {value!r:.80}")
    return number
