"""Questions with several choices: SWAG's CSV, the same out of TensorFlow Datasets, and one's own JSON lines."""

from dataclasses import dataclass
from typing import NamedTuple

from keras_bert.errors import UserError
from keras_bert.tasks.examples.labels import BadCell, check_text
from keras_bert.tasks.examples.tables import read_table

_SWAG_ENDINGS = tuple(f"ending{number}" for number in range(4))
_SWAG_TEXTS = ("sent1", "sent2", *_SWAG_ENDINGS)


@dataclass(frozen=True)
class ChoiceExamples:
    """The examples of one split, n of them, in their file's order.

    Attributes:
        origin: the file or data set, for messages.
        contexts: list of n str, what stands before all choices.
        beginnings: list of n str, with what every choice of an example begins; "" for nothing.
        choices: list of n lists of two str or more.
        labels: list of n int, which choice is right, from 0; None where they are hidden.
        ids: list of n objects, the `id` of each, None where it has none.
    """

    origin: str
    contexts: list
    beginnings: list
    choices: list
    labels: list | None
    ids: list

    def __len__(self):
        return len(self.contexts)


class ChoiceRow(NamedTuple):
    """One example, of which nothing is checked yet; see `ChoiceExamples`."""

    line: int
    id: object
    context: str
    beginning: str
    choices: list
    label: object


def swag_rows(path):
    """Iterates over the `ChoiceRow`s of one of SWAG's files (Zellers et al. 2018), CSV with a header.

    The context is `sent1`; each choice is `sent2` and one of `ending0` to `ending3`, as in the BERT paper's section
    4.4. A file without the column `label` hides the labels. "-" is what comes in.

    Raises:
        UserError: the file cannot be read, or a column is missing.
    """
    return map(_swag, read_table(path, _SWAG_TEXTS, ["label"], format="csv"))


def own_rows(path):
    """Iterates over the `ChoiceRow`s of JSON lines.

    Each line has `choices`, a list of texts, as many as there are; `context` or `question`, or both, whereupon the
    choices stand behind the question; `label`, the number of the right choice from 0; and, as one likes, `id`. A file
    without `label` hides the labels. "-" is what comes in.

    Raises:
        UserError: as `swag_rows`.
    """
    return map(_own, read_table(path, ["choices"], ["context", "question", "label", "id"], format="jsonl"))


def swag_tfds_rows(split, source):
    """(where from, the `ChoiceRow`s) of SWAG as TensorFlow Datasets has prepared it.

    Args:
        split: TFDS's name of the split.
        source: a `sources.TfdsSource`.
    """
    from keras_bert.tasks.examples.tfds_table import TfdsTable  # Imports TensorFlow.

    table = TfdsTable("swag", source.data_dir, source.download)
    return f"{table.name} {split}", map(_swag, table.rows(split, [*_SWAG_TEXTS, "label"]))


def _swag(row):
    context, beginning, *choices, label = row.cells
    return ChoiceRow(row.line, None, context, beginning, choices, label)


def _own(row):
    choices, context, question, label, id = row.cells
    if context is not None and question is not None:
        return ChoiceRow(row.line, id, context, question, choices, label)
    return ChoiceRow(row.line, id, question if context is None else context, "", choices, label)


def choice_examples(origin, rows, unit="line", labelled=True):
    """The `ChoiceExamples` of `ChoiceRow`s.

    Args:
        origin: the file or data set, for messages.
        rows: the `ChoiceRow`s.
        unit: what the number of a row counts, for messages.
        labelled: whether labels are read.

    Raises:
        UserError: rows are broken; their number, and the first. There is none, or some alone have labels.
    """
    kept, labels, names, problems = [], [], [], []
    for row in rows:
        name = f"{unit} {row.line}" if row.id is None else f"{unit} {row.line} (id {row.id!r})"
        try:
            _check_texts(row.context, row.beginning, row.choices)
            labels.append(_label(row.label, len(row.choices)) if labelled else None)
        except BadCell as problem:
            problems.append(f"{origin} {name}: {problem}")
            continue
        kept.append(row)
        names.append(name)
    hidden = [name for name, label in zip(names, labels) if label is None]
    if problems:
        remedy = f"{len(problems):,} examples are broken; mend" if len(problems) > 1 else "Mend the example"
        raise UserError(f"{problems[0]}. {remedy} or remove {'them' if len(problems) > 1 else 'it'}.")
    if not names:
        raise UserError(f"{origin}: needs one example or more. Received: none.")
    if hidden and len(hidden) < len(names):
        raise UserError(
            f"{origin} {hidden[0]}: needs a label, as other examples have. Received: none, and none in {len(hidden):,} "
            "of all."
        )
    return ChoiceExamples(
        origin,
        [row.context for row in kept],
        [row.beginning for row in kept],
        [row.choices for row in kept],
        None if hidden else labels,
        [row.id for row in kept],
    )


def _check_texts(context, beginning, choices):
    for text in (context, beginning):
        check_text(text, "a text before the choices")
    if not isinstance(choices, list) or len(choices) < 2:
        raise BadCell(f"needs a list of two choices or more. Received: {choices!r}")
    for number, choice in enumerate(choices):
        check_text(choice, f"a text for its choice {number}")
        if not choice.strip():
            raise BadCell(f"needs a text for its choice {number}. Received: {choice!r}")


def _label(value, choices):
    """A label's number, None for a hidden one."""
    if value is None or value == "" or value == -1:
        return None
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    number = int(value) if is_whole or isinstance(value, str) and value.strip().isdecimal() else None
    if number is None or not 0 <= number < choices:
        raise BadCell(f"needs a label from 0 to {choices - 1}. Received: {value!r}")
    return number
