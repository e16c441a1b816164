"""Questions with several choices: SWAG's table, COPA's JSON lines or TensorFlow Datasets' COPA, and the user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from keras_bert.core.errors import UserError
from keras_bert.data.corpus.text_lines import plain_ending
from keras_bert.data.tables.rows import Row
from keras_bert.data.tables.tables import read_table
from keras_bert.tasks import superglue
from keras_bert.tasks.answer_files import STANDARD_STREAM
from keras_bert.tasks.labels import BadCell, check_text, is_missing
from keras_bert.tasks.sources import TfdsSource
from keras_bert.tasks.task import Window

_SWAG_ENDINGS = tuple(f"ending{number}" for number in range(4))
_SWAG_TEXTS = ("sent1", "sent2", *_SWAG_ENDINGS)
_OWN_CHOICES = "Give questions of your own as JSON lines, Parquet or Arrow, with a list of choices in each row."
_COPA_CHOICES = ("choice1", "choice2")
_COPA_COLUMNS = ("premise", "question", *_COPA_CHOICES)
# The questions that the choices answer.
_COPA_QUESTIONS = {"cause": "What was the cause of this?", "effect": "What happened as a result?"}


class ChoiceRow(NamedTuple):
    """One example.

    Attributes:
        place: its file and line, for messages.
        id: its `id`; None if it has none.
        context: a text, which precedes all choices.
        beginning: the beginning of all choices; "" for none.
        choices: a list of two or more texts.
        label: which choice is correct, as the file has it.
    """

    place: str
    id: object
    context: Any
    beginning: Any
    choices: Any
    label: object


@dataclass(frozen=True)
class ChoiceWindow(Window[ChoiceRow]):
    """Some of a split's examples, checked; `labels` are the numbers of the correct choices, None if hidden."""

    labels: list[int] | None


def swag_rows(path: str) -> Iterator[ChoiceRow]:
    """Iterates over the rows of a table with SWAG's columns (Zellers et al. 2018).

    The context is `sent1`; each choice is `sent2` followed by one of `ending0` to `ending3`, as in the BERT paper,
    section 4.4. In a table without a column `label`, the labels are hidden. "-" is stdin.

    Raises:
        UserError: the file cannot be read, or a column is missing.
    """
    return map(_swag, read_table(path, _SWAG_TEXTS, ["label"], advice=_OWN_CHOICES))


def own_rows(path: str) -> Iterator[ChoiceRow]:
    """Iterates over the rows of a table with lists: JSON, Parquet, Arrow or a data set.

    Each row has `choices`, a list of any number of texts; `context` or `question`, or both, in which case the choices
    follow the question; `label`, the number of the correct choice from 0; and optionally `id`. In a file without
    `label`, the labels are hidden. "-" is stdin.

    Raises:
        UserError: as `swag_rows`.
    """
    return map(_own, read_table(path, ["choices"], ["context", "question", "label", "id"], optional_in_rows=True))


def swag_or_own_rows(of_stdin: Callable[[str], Iterator[ChoiceRow]], path: str) -> Iterator[ChoiceRow]:
    """Iterates over the rows of a table: SWAG's if it is a .csv (.csv.gz, …) or has a `sent1`, else the user's own.

    Args:
        of_stdin: function ("-") -> the rows of stdin.

    Raises:
        UserError: as `swag_rows`.
    """
    if path == STANDARD_STREAM:
        return of_stdin(path)
    return swag_rows(path) if plain_ending(path) == ".csv" or _has_context(path) else own_rows(path)


def _has_context(path: str) -> bool:
    """Whether the first row of a table has SWAG's column of contexts."""
    first = next(read_table(path, (), _SWAG_TEXTS[:1]), None)
    return first is not None and first.cells[0] is not None


def copa_rows(path: str) -> Iterator[ChoiceRow]:
    """Iterates over the rows of one of COPA's files in SuperGLUE, JSON lines.

    Each line has `premise`, the context; `question`, cause or effect, spelled out at the beginning of both choices;
    `choice1` and `choice2`; `label`, 0 or 1; and `idx`. "-" is stdin.

    Raises:
        UserError: as `swag_rows`, or the question is neither cause nor effect.
    """
    return _copa(read_table(path, _COPA_COLUMNS, ["label", "idx"], format="jsonl", optional_in_rows=True))


def copa_tfds_rows(split: str, source: TfdsSource) -> tuple[str, Iterator[ChoiceRow]]:
    """(the origin, the rows) of COPA as prepared by TensorFlow Datasets; `split` is TFDS's name of the split."""
    table = source.table(superglue.tfds_name("copa"))
    return f"{table.name} {split}", _copa(table.examples(split, [*_COPA_COLUMNS, "label", "idx"], "idx"))


def _swag(row: Row) -> ChoiceRow:
    context, beginning, *choices, label = row.cells
    return ChoiceRow(row.place, None, context, beginning, choices, label)


def _copa(rows: Iterable[Row]) -> Iterator[ChoiceRow]:
    for row in rows:
        premise, question, *choices, label, idx = row.cells
        if not isinstance(question, str) or question not in _COPA_QUESTIONS:
            raise UserError(f"{row.place}: needs the question cause or effect. Received: {question!r}.")
        if label in _COPA_CHOICES:  # TFDS's names.
            label = _COPA_CHOICES.index(label)
        yield ChoiceRow(row.place, idx, premise, _COPA_QUESTIONS[question], choices, label)


def _own(row: Row) -> ChoiceRow:
    choices, context, question, label, id = row.cells
    if context is not None and question is not None:
        return ChoiceRow(row.place, id, context, question, choices, label)
    return ChoiceRow(row.place, id, question if context is None else context, "", choices, label)


def choice_examples(origin: str, rows: Iterable[ChoiceRow], labelled: bool = True) -> ChoiceWindow:
    """Checks rows and collects them.

    Args:
        origin: the file or data set, for messages.
        labelled: whether to read labels.

    Raises:
        UserError: rows are malformed (gives their count and the first), there are none, or only some have labels.
    """
    kept, names, problems = [], [], []
    labels: list[int | None] = []
    for row in rows:
        name = row.place if row.id is None else f"{row.place} (id {row.id!r})"
        try:
            _check_texts(row.context, row.beginning, row.choices)
            labels.append(_label(row.label, len(row.choices)) if labelled else None)
        except BadCell as problem:
            problems.append(f"{name}: {problem}")
            continue
        kept.append(row)
        names.append(name)
    hidden = [name for name, label in zip(names, labels) if label is None]
    if problems:
        several = len(problems) > 1
        remedy = f"{len(problems):,} examples are malformed; fix" if several else "Fix the example"
        raise UserError(f"{problems[0]}. {remedy} or remove {'them' if several else 'it'}.")
    if not names:
        raise UserError(f"{origin}: needs at least one example. Received: none.")
    if hidden and len(hidden) < len(names):
        raise UserError(
            f"{hidden[0]}: needs a label, as other examples have. Received: none; {len(hidden):,} examples have none."
        )
    return ChoiceWindow(kept, origin, None if hidden else [label for label in labels if label is not None])


def _check_texts(context: object, beginning: object, choices: object) -> None:
    for text in (context, beginning):
        check_text(text, "a text before the choices")
    if not isinstance(choices, list) or len(choices) < 2:
        raise BadCell(f"needs a list of two choices or more. Received: {choices!r}")
    for number, choice in enumerate(choices):
        check_text(choice, f"a text for its choice {number}")
        if not choice.strip():
            raise BadCell(f"needs a text for its choice {number}. Received: {choice!r}")


def _label(value: object, choices: int) -> int | None:
    """The number of a label, which may be text (CSV) or a float (pandas); None if it is hidden: no value, or -1."""
    text = "" if is_missing(value) else str(value).strip().removesuffix(".0")
    if text in ("", "-1"):
        return None
    if not text.isdecimal() or float(text) >= choices:
        raise BadCell(f"needs a label from 0 to {choices - 1}. Received: {value!r:.80}")
    return int(text)
