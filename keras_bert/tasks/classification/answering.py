"""Answers to whole texts: a benchmark's submission, or a JSON object a text."""

import contextlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from keras_bert.config.heads import MULTI_LABEL, REGRESSION
from keras_bert.data.corpus.text_lines import Unreadable, read_lines, read_standard_input
from keras_bert.errors import UserError
from keras_bert.tasks.answer_files import STANDARD_STREAM, text_output
from keras_bert.tasks.classification.examples import ExampleRow, ExampleRows
from keras_bert.tasks.classification.scores import predictions
from keras_bert.tasks.classification.submission import submission_lines, submission_path
from keras_bert.tasks.examples.labels import BadCell, check_text
from keras_bert.tasks.examples.tables import known_format, plain_ending, read_table
from keras_bert.tasks.examples.windows import windows
from keras_bert.tasks.task import INPUT

_CHARACTERS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class TextWindow:
    """Some of a split's examples.

    Attributes:
        texts: one or two lists of n str.
        indices: list of n int, the numbers by which a submission names them.
    """

    texts: list
    indices: list

    def __len__(self):
        return len(self.indices)


def text_windows(task, split, source, notes):
    """Iterates over the `TextWindow`s of a split, whose labels are not read.

    Args:
        task: a `Task` with its labels.
        split: a name in its `splits`; `INPUT` may be plain text, see `read_texts`.
        source: see `load_examples`.
        notes: a list that takes what a user should know, one line each.

    Raises:
        UserError: the examples cannot be read to their end, or there is none.
    """
    if split == INPUT:
        [path] = task.splits[split].files
        rows = read_texts(path, task.texts, task.format, task.splits[split].columns)
    else:
        rows = ExampleRows(task, split, source, labels=False)
    for window in windows(rows, _CHARACTERS_AT_ONCE, lambda row: sum(map(len, row.texts))):
        yield TextWindow(
            [list(column) for column in zip(*(row.texts for row in window))], [row.number for row in window]
        )
    if isinstance(rows, ExampleRows):
        notes += rows.warnings()


def read_texts(source, names, format=None, columns=None) -> Iterator[ExampleRow]:
    """Iterates over `ExampleRow`s without labels.

    Args:
        source: a table (.csv, .tsv, .jsonl), or plain text (.txt, or "-", what comes in) with one text a line, or two
            with a tab between.
        names: the table's columns with the texts.
        format, columns: of the tables that the task was trained on, see `read_table`; another format is taken where
            the file's name tells it.

    Raises:
        UserError: the source cannot be read to its end or holds nothing, with the line.
    """
    name = "What comes in" if source == STANDARD_STREAM else source
    rows = _lines(source, name, len(names))
    if source != STANDARD_STREAM and plain_ending(source) != ".txt":
        rows = read_table(source, names, format=known_format(source, format), columns=columns)
        rows = ((row.line, row.cells) for row in rows)
    index = -1
    for index, (line, cells) in enumerate(rows):
        try:
            yield ExampleRow([check_text(cell) for cell in cells], None, index)
        except BadCell as problem:
            raise UserError(f"{name} line {line}: {problem}.") from None
    if index < 0:
        raise UserError(f"{name}: needs one text or more. Received: none.")


def _lines(source, name, count):
    """(number, texts) of each line."""
    number = 0
    try:
        for number, line in enumerate(read_standard_input() if source == STANDARD_STREAM else read_lines(source), 1):
            texts = [line] if count == 1 else line.split("\t")
            if len(texts) != count:
                raise UserError(f"{name} line {number}: needs two texts with a tab between. Received: {len(texts)}.")
            yield number, texts
    except Unreadable as reason:
        raise UserError(f"{name} line {reason.line or number + 1}: {reason}. Give UTF-8 text.") from None


def plain_answers(head, task, served):
    """Iterates over what a model says of each text, as plain mappings.

    `label` with `probability` and the `probabilities` of all labels; for several labels `labels` and `probabilities`;
    for a number `score`.

    Args:
        head: the `ClassificationConfig`.
        task: the `Task`, which knows the range of scores.
        served: what the model's `ServingFunction` gives of each text.
    """
    lowest, highest = task.score_range or (-math.inf, math.inf)
    for row in served:
        if head.problem_type == REGRESSION:
            yield {"score": min(max(float(row["score"]), lowest), highest)}
            continue
        shares = dict(zip(head.labels, row["probabilities"].tolist()))
        if head.problem_type == MULTI_LABEL:
            yield {"labels": [label for label, share in shares.items() if share > 0.5], "probabilities": shares}
        else:
            label = row["label"].decode("utf-8")
            yield {"label": label, "probability": shares[label], "probabilities": shares}


def served_logits(head, served):
    """Float64 [examples, labels] of what a `ServingFunction` gives of each text."""
    output = "score" if head.problem_type == REGRESSION else "logits"
    return np.asarray([row[output] for row in served], "float64").reshape(len(served), head.num_labels)


@contextlib.contextmanager
def writing_answers(head, task, split, output):
    """Function (window, what is served for it) that writes the answers to a split, one `TextWindow` after the other.

    Where the benchmark takes a submission of the split that is written into the folder `output`; else `output` is a
    file, or "-", with a JSON object a text: the texts under their columns' names, and `plain_answers`.
    """
    if task.splits[split].submission:
        with text_output(submission_path(output, task, split)) as write:
            write(["index\tprediction\n"])
            yield lambda window, served: write(
                submission_lines(task, window.indices, predictions(head, served_logits(head, served)))
            )
        return
    with text_output(output) as write:
        yield lambda window, served: write(
            json.dumps({**dict(zip(task.texts, texts)), **answer}, ensure_ascii=False) + "\n"
            for texts, answer in zip(zip(*window.texts), plain_answers(head, task, served), strict=True)
        )
