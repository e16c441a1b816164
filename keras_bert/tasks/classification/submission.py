"""Predictions in the file that a benchmark's server takes."""

import numpy as np

from keras_bert.config.classification import REGRESSION, SINGLE_LABEL
from keras_bert.files import atomic_write, join, make_folder


def write_submission(folder, task, split, indices, predictions):
    """Writes GLUE's format: `index` and `prediction` with a tab between, labels as the benchmark writes them.

    Args:
        folder: made if it is not there; the file's name is `task.splits[split].submission`.
        indices: `[n]`, `Examples.indices`.
        predictions: `[n]`, label ids, or scores, which are clipped to `task.score_range`.

    Returns:
        The file's path.
    """
    name = task.splits[split].submission
    if name is None or task.kind not in (SINGLE_LABEL, REGRESSION):
        raise ValueError(f"split: needs one with a submission file. Received: {split!r} of {task.name}.")
    predictions = np.asarray(predictions)
    if task.kind == REGRESSION:
        if not np.isfinite(predictions).all():
            raise ValueError("predictions: needs finite scores. Received: one that is not.")
        scores = np.clip(predictions, *task.score_range) if task.score_range else predictions
        words = [f"{score:.3f}" for score in scores]
    else:
        written = task.written or task.labels
        words = [written[label] for label in predictions]
    make_folder(folder)
    path = join(folder, name)
    with atomic_write(path) as stream:
        stream.write("index\tprediction\n")
        stream.writelines(f"{index}\t{word}\n" for index, word in zip(indices, words, strict=True))
    return path
