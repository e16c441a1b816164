"""Reads the examples of a split into rows of tokens with labels, a few thousand at a time."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from keras_bert.config.finetuning import InputConfig
from keras_bert.config.heads import MULTI_LABEL, SINGLE_LABEL
from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.data.growing_array import GrowingArray
from keras_bert.errors import UserError
from keras_bert.tasks.classification.examples import ExampleRow, ExampleRows
from keras_bert.tasks.examples.sequence_rows import SequenceRows
from keras_bert.tasks.examples.sources import Source
from keras_bert.tasks.examples.windows import windows
from keras_bert.tasks.task import Task
from keras_bert.text.tokenizers import Tokenizer

_CHARACTERS_AT_ONCE = 1 << 22


class ReadSplit(NamedTuple):
    """A split, of whose texts only the tokens are kept.

    Attributes:
        rows: the rows, with their `labels` and, if examples have several rows, `example_weights`.
        examples: int32 [rows], the number of each row's example.
        labels: of each example, as from `LabelReader.array`; None if they are hidden.
        origin: the file or data set, for messages.
        warnings: what was skipped or looks odd, one line each.
    """

    rows: TokenRows
    examples: np.ndarray
    labels: np.ndarray | None
    origin: str
    warnings: list[str]


def read_split(
    task: Task,
    split: str,
    source: Source,
    tokenizer: Tokenizer,
    input_config: InputConfig,
    noise: Callable[[str], str] | None = None,
    restore_spaces: Callable[[Sequence[str]], list[str]] | None = None,
    rows: SequenceRows | None = None,
    keep: Callable[[ExampleRow], bool] | None = None,
) -> ReadSplit:
    """Reads one split.

    Args:
        task, split, source: which.
        tokenizer, input_config: make the rows.
        noise, restore_spaces: applied to the texts, in this order.
        rows: what collects the rows; by default a `SequenceRows`.
        keep: tells which examples are kept; by default all.

    Raises:
        UserError: as `load_examples`, or no example is kept.
    """
    read, rows = ExampleRows(task, split, source), rows or SequenceRows(tokenizer, input_config)
    dtype = np.int32 if task.kind == SINGLE_LABEL else np.float32
    labels = GrowingArray(dtype)
    for block in windows(
        filter(keep, read) if keep else read, _CHARACTERS_AT_ONCE, lambda row: sum(map(len, row.texts))
    ):
        columns = list(zip(*(row.texts for row in block)))
        texts = [[noise(text) for text in column] if noise else list(column) for column in columns]
        rows.add([restore_spaces(column) for column in texts] if restore_spaces else texts)
        if block[0].label is not None:
            labels.extend(read.reader.array([row.label for row in block]).ravel())
    found, examples = rows.rows(), rows.examples()
    if not len(examples):
        raise UserError(f"{read.origin}: needs a positive pair or more. Received: none. Lower data.positive.")
    shape = (-1, len(task.labels or ())) if task.kind == MULTI_LABEL else (-1,)
    by_example = labels.array().reshape(shape)
    hidden = not len(by_example)
    found.extra["labels"] = np.zeros((len(found), *shape[1:]), dtype) if hidden else by_example
    if len(found) > examples[-1] + 1:  # Some examples have several rows.
        found.extra["labels"] = found.extra["labels"] if hidden else by_example[examples]
        found.extra["example_weights"] = (1.0 / np.bincount(examples)).astype(np.float32)[examples]
    return ReadSplit(found, examples, None if hidden else by_example, read.origin, list(read.warnings()))
