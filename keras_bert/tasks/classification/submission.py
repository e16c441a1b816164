"""Predictions in the file format of a benchmark's server: GLUE's."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from keras_bert.config.heads import REGRESSION, SINGLE_LABEL
from keras_bert.files import join, make_folder
from keras_bert.tasks.task import Task


def submission_path(folder: str, task: Task, split: str) -> str:
    """The path of `task.splits[split].submission` in a folder, which is created."""
    name = task.splits[split].submission
    if name is None or task.kind not in (SINGLE_LABEL, REGRESSION):
        raise ValueError(f"split: needs one with a submission file. Received: {split!r} of {task.name}.")
    make_folder(folder)
    return join(folder, name)


def submission_lines(task: Task, indices: Iterable[int], predictions: ArrayLike) -> Iterator[str]:
    """The lines: `index` and `prediction` separated by a tab, with labels as the benchmark spells them.

    Args:
        task: the task.
        indices: `[n]`, the examples' numbers.
        predictions: `[n]`, label ids, or scores, which are clipped to `task.score_range`.
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
    return (f"{index}\t{word}\n" for index, word in zip(indices, words, strict=True))
