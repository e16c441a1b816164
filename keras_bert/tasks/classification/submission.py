"""Predictions in the file that a benchmark's server takes: GLUE's format."""

import numpy as np

from keras_bert.config.heads import REGRESSION, SINGLE_LABEL
from keras_bert.files import join, make_folder


def submission_path(folder, task, split):
    """The file's path in a folder, which is made; its name is `task.splits[split].submission`."""
    name = task.splits[split].submission
    if name is None or task.kind not in (SINGLE_LABEL, REGRESSION):
        raise ValueError(f"split: needs one with a submission file. Received: {split!r} of {task.name}.")
    make_folder(folder)
    return join(folder, name)


def submission_lines(task, indices, predictions):
    """Iterates over the lines: `index` and `prediction` with a tab between, labels as the benchmark writes them.

    Args:
        task: the `Task`.
        indices: `[n]`, the examples' numbers.
        predictions: `[n]`, label ids, or scores, which are clipped to `task.score_range`.
    """
    predictions = np.asarray(predictions)
    if task.kind == REGRESSION:
        if not np.isfinite(predictions).all():
            raise ValueError("predictions: needs finite scores. Received: one that is not.")
        scores = np.clip(predictions, *task.score_range) if task.score_range else predictions
        words = (f"{score:.3f}" for score in scores)
    else:
        written = task.written or task.labels
        words = (written[label] for label in predictions)
    return (f"{index}\t{word}\n" for index, word in zip(indices, words, strict=True))
