"""Predictions in the file format of a benchmark's server: GLUE's or SuperGLUE's."""

import contextlib
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from keras_bert.config.heads import REGRESSION, SINGLE_LABEL
from keras_bert.files import join, make_folder
from keras_bert.tasks import superglue
from keras_bert.tasks.answer_files import text_output
from keras_bert.tasks.task import Task


def submission_path(folder: str, task: Task, split: str) -> str:
    """The path of `task.splits[split].submission` in a folder, which is created."""
    name = task.splits[split].submission
    if name is None or task.kind not in (SINGLE_LABEL, REGRESSION):
        raise ValueError(f"split: needs one with a submission file. Received: {split!r} of {task.name}.")
    make_folder(folder)
    return join(folder, name)


@contextlib.contextmanager
def writing_submission(task: Task, split: str, folder: str) -> Iterator[Callable[[Iterable[int], ArrayLike], None]]:
    """Function (indices, predictions) that writes the lines of a split's submission into a folder, some at a time.

    A file of JSON lines is SuperGLUE's; any other is GLUE's table.
    """
    path = submission_path(folder, task, split)
    is_json = path.endswith(".jsonl")
    with text_output(path) as write:
        write([] if is_json else ["index\tprediction\n"])
        yield lambda indices, predictions: write(submission_lines(task, indices, predictions, is_json))


def submission_lines(
    task: Task, indices: Iterable[int], predictions: ArrayLike, is_json: bool = False
) -> Iterator[str]:
    """The lines, with labels as the benchmark spells them.

    Args:
        task: the task.
        indices: `[n]`, the examples' numbers.
        predictions: `[n]`, label ids, or scores, which are clipped to `task.score_range`.
        is_json: whether a line is SuperGLUE's JSON object, and not `index` and `prediction` separated by a tab.
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
