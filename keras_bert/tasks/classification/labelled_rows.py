"""The examples of a split as rows of tokens with their labels, read and tokenized some thousand at a time."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from keras_bert.config.finetuning import InputConfig
from keras_bert.config.heads import MULTI_LABEL, SINGLE_LABEL
from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.data.growing_array import GrowingArray
from keras_bert.tasks.classification.examples import ExampleRows
from keras_bert.tasks.examples.sequence_rows import SequenceRows
from keras_bert.tasks.examples.sources import TfdsSource
from keras_bert.tasks.examples.windows import windows
from keras_bert.tasks.task import Task
from keras_bert.text.tokenizer import WordPieceTokenizer

_CHARACTERS_AT_ONCE = 1 << 22


class ReadSplit(NamedTuple):
    """A split without its texts.

    Attributes:
        rows: the `TokenRows`, with the `labels` of each and, where examples are several rows, `example_weights`.
        examples: int32 [rows], the number of the example that each row is of.
        labels: of each example, as `LabelReader.array` gives them; None where they are hidden.
        origin: the file or data set, for messages.
        warnings: what was left out or looks odd, one line each.
    """

    rows: TokenRows
    examples: np.ndarray
    labels: np.ndarray | None
    origin: str
    warnings: list[str]


def read_split(
    task: Task,
    split: str,
    source: str | TfdsSource,
    tokenizer: WordPieceTokenizer,
    settings: InputConfig,
    noise: Callable[[str], str] | None = None,
) -> ReadSplit:
    """The `ReadSplit` of one split, whose texts go through `noise` where that is given.

    Raises:
        UserError: as `load_examples`.
    """
    read, rows = ExampleRows(task, split, source), SequenceRows(tokenizer, settings)
    dtype = np.int32 if task.kind == SINGLE_LABEL else np.float32
    labels = GrowingArray(dtype)
    for block in windows(read, _CHARACTERS_AT_ONCE, lambda row: sum(map(len, row.texts))):
        columns = list(zip(*(row.texts for row in block)))
        rows.add([[noise(text) for text in column] if noise else list(column) for column in columns])
        if block[0].label is not None:
            labels.extend(read.reader.array([row.label for row in block]).ravel())
    found, examples = rows.rows(), rows.examples()
    shape = (-1, len(task.labels or ())) if task.kind == MULTI_LABEL else (-1,)
    of_examples = labels.array().reshape(shape)
    hidden = not len(of_examples)
    found.extra["labels"] = np.zeros((len(found), *shape[1:]), dtype) if hidden else of_examples
    if len(found) > examples[-1] + 1:  # Some examples are several rows.
        found.extra["labels"] = found.extra["labels"] if hidden else of_examples[examples]
        found.extra["example_weights"] = (1.0 / np.bincount(examples)).astype(np.float32)[examples]
    return ReadSplit(found, examples, None if hidden else of_examples, read.origin, list(read.warnings()))
