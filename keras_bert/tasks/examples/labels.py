"""From what stands in a label's cell to the array that a head is trained on, and back to the words."""

import json
import math

import numpy as np

from keras_bert.config.heads import MULTI_LABEL, REGRESSION

_SHOWN = 20


class BadCell(Exception):
    """What is wrong with a cell; the reader knows where it stands."""


def check_text(cell, needed="text"):
    """Returns what stands in a cell, a str that can be encoded. Raises `BadCell` that says what is needed."""
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
        task: a `Task` whose labels are known.
        words: the word that stands for each label, in the order of `task.labels`; `task.written` or the names if None.
    """

    def __init__(self, task, words=None):
        self._task = task
        self._words = words or task.written or task.labels or ()
        self._ids = {word: id for id, word in enumerate(self._words)}

    def read(self, value):
        """A label's id, the list of ids (multi-label) or the number (regression). Raises `BadCell`."""
        if self._task.kind == REGRESSION:
            return _number(value)
        ids = [self._id(word) for word in label_words(self._task, value)]
        return ids if self._task.kind == MULTI_LABEL else ids[0]

    def array(self, read):
        """What `read` gave for n examples: int32 `[n]`, float32 `[n]` or, multi-label, float32 `[n, labels]`."""
        if self._task.kind == REGRESSION:
            return np.asarray(read, np.float32)
        if self._task.kind != MULTI_LABEL:
            return np.asarray(read, np.int32)
        array = np.zeros((len(read), len(self._words)), np.float32)
        for row, ids in zip(array, read):
            row[ids] = 1.0
        return array

    def _id(self, word):
        if word not in self._ids:
            known = ", ".join(self._words[:_SHOWN]) + (", …" if len(self._words) > _SHOWN else "")
            raise BadCell(f"needs a known label, one of {known}. Received: {word[:80]!r}")
        return self._ids[word]


def label_words(task, value):
    """The words in a label's cell: one, or any number for a multi-label task. Raises `BadCell`.

    Several stand in a JSON list or with the task's separator between them; numbers and true and false are words too.
    """
    if task.kind != MULTI_LABEL:
        return [_word(value)]
    if isinstance(value, str):
        listed = _json_list(value)
        value = [word for word in value.split(task.separator) if word.strip()] if listed is None else listed
    if not isinstance(value, list):
        raise BadCell(f"needs a list of labels. Received: {value!r}")
    return [_word(word) for word in value]


def sorted_labels(words):
    """Numbers by their size, anything else as text."""
    return tuple(sorted(words, key=int) if all(word.isdecimal() for word in words) else sorted(words))


def _json_list(cell):
    try:
        value = json.loads(cell) if cell.lstrip().startswith("[") else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _word(value):
    if isinstance(value, (bool, int, float)):
        value = json.dumps(value)
    word = value.strip() if isinstance(value, str) else ""
    if not word:
        raise BadCell(f"needs a label. Received: {value!r}")
    return word


def _number(value):
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise BadCell(f"needs a number as its label. Received: {value!r}")
    return number
