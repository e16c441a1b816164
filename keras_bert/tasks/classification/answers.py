"""Reads texts to answer, and words the answers, for a benchmark's submission or in JSON."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION
from keras_bert.core.errors import UserError
from keras_bert.data.tables.tables import read_texts
from keras_bert.data.windows import windows
from keras_bert.tasks import superglue
from keras_bert.tasks.answer_files import STANDARD_STREAM
from keras_bert.tasks.classification.data import ExampleRow
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.scores import numbers
from keras_bert.tasks.labels import bad_cell_at, check_text
from keras_bert.tasks.task import INPUT, Task


def submission_lines(
    task: Task, indices: Iterable[int], predictions: ArrayLike, is_json: bool = False
) -> Iterator[str]:
    """The lines of a submission, with labels as the benchmark spells them.

    Args:
        indices: `[n]`, the examples' numbers.
        predictions: `[n]`, label ids, or scores, which are clipped to `task.score_range`.
        is_json: whether lines are SuperGLUE's JSON objects; otherwise they are `index` and `prediction`, tab-separated.
    """
    predictions = np.asarray(predictions)
    words: Iterable[str]
    if task.kind == REGRESSION:
        if not np.isfinite(predictions).all():
            raise ValueError("predictions: needs finite scores. Received: one that is not finite.")
        scores = np.clip(predictions, *task.score_range) if task.score_range else predictions
        words = (f"{score:.3f}" for score in scores)
    else:
        written = task.written or task.labels or ()
        words = (written[label] for label in predictions)
    if is_json:
        return superglue.answer_lines(indices, words)
    return (f"{index}\t{word}\n" for index, word in zip(indices, words, strict=True))


@dataclass(frozen=True, eq=False)
class TextWindow:
    """Some of a split's examples.

    Attributes:
        texts: one or two lists of n texts.
        indices: n numbers, which identify the examples in a submission.
        labels: the examples' labels, as from `LabelReader.array`; None if hidden or not read.
        origin: the file or data set, for messages.
    """

    texts: list[list[str]]
    indices: list[int]
    labels: np.ndarray | None
    origin: str

    def __len__(self) -> int:
        return len(self.indices)


def text_windows(
    rows: Iterable[ExampleRow], origin: str, label_array: Callable[[Sequence[Any]], np.ndarray] = np.asarray
) -> Iterator[TextWindow]:
    """Groups examples into windows; `label_array` makes an array of their labels."""
    for window in windows(rows, lambda row: sum(map(len, row.texts))):
        columns = [list(column) for column in zip(*(row.texts for row in window))]
        labels = None if window[0].label is None else label_array([row.label for row in window])
        yield TextWindow(columns, [row.number for row in window], labels, origin)


def input_rows(task: Task) -> Iterator[ExampleRow]:
    """The texts of the split `INPUT`, a table or plain text (see `read_texts`), without labels.

    Raises `UserError` if a text is invalid, naming its line, or if there is none.
    """
    split = task.splits[INPUT]
    [source] = split.files
    index = -1
    rows = read_texts(source, task.texts, task.format, header=split.columns, options=task.options)
    for index, row in enumerate(rows):
        with bad_cell_at(row.place):
            texts = [check_text(cell) for cell in row.cells]
        yield ExampleRow(texts, None, index)
    if index < 0:
        raise UserError(f"{'stdin' if source == STANDARD_STREAM else source}: needs at least one text. Received: none.")


def plain_answers(head: ClassificationConfig, logits: np.ndarray) -> Iterator[dict[str, Any]]:
    """Yields the model's answer to each text, ready for JSON.

    `label` with its `probability` and the `probabilities` of all labels; multi-label: `labels` and `probabilities`;
    regression: `score`, as the export computes it.

    Args:
        logits: [examples, labels].
    """
    if head.problem_type == REGRESSION:
        yield from ({"score": score} for score in numbers(head, logits).tolist())
        return
    is_multi = head.problem_type == MULTI_LABEL
    values = scipy.special.expit(logits) if is_multi else scipy.special.softmax(logits, axis=1)
    for row in values.tolist():
        probabilities = dict(zip(head.labels, row))
        if is_multi:
            labels = [label for label, probability in probabilities.items() if probability > 0.5]
            yield {"labels": labels, "probabilities": probabilities}
        else:
            label = max(probabilities, key=probabilities.__getitem__)
            yield {"label": label, "probability": probabilities[label], "probabilities": probabilities}
