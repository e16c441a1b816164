"""Where the pairs are: STS-B, or the user's own files."""

import dataclasses
from collections.abc import Mapping

from keras_bert.config.finetuning import TaskDataConfig
from keras_bert.config.heads import REGRESSION
from keras_bert.errors import UserError
from keras_bert.tasks.classification.glue import STSB
from keras_bert.tasks.examples.sources import Source, data_source
from keras_bert.tasks.task import INPUT, Split, Task, with_own_files

NAME = "pairs-contrastive"
_STSB = dataclasses.replace(STSB, name=NAME, score_range=None)  # Its answers are cosines.


def training_table(data: TaskDataConfig) -> tuple[Task, Source]:
    """The pairs to train on: the user's `train`, with scores in the column `label` if that is named; else STS-B's.

    Raises:
        UserError: the user's file needs the names of two columns.
    """
    if data.train:
        return _own(data, "train", data.train, labelled=None if data.label else False), ""
    return _stsb(data, ("train",))


def judging_table(data: TaskDataConfig, own: Mapping[str, str]) -> tuple[Task, Source]:
    """The pairs with scores to judge by: a file to answer that `own` names, the user's `dev`, or STS-B's dev set."""
    if INPUT in own:
        task = _own(data, "dev", "", labelled=None) if len(data.texts) == 2 else _STSB
        return with_own_files(dataclasses.replace(task, format=data.format), own, tuple(data.columns) or None), ""
    if data.dev:
        return _own(data, "dev", data.dev, labelled=True), ""
    return _stsb(data, ("dev",))  # The scores of its test set are hidden.


def _own(data: TaskDataConfig, split: str, path: str, labelled: bool | None) -> Task:
    if len(data.texts) != 2:
        raise UserError(f"text: needs the names of two columns, one for each text. Received: {', '.join(data.texts)}.")
    return Task(
        name=NAME,
        kind=REGRESSION,
        texts=tuple(data.texts),
        label=data.label or "score",
        splits={split: Split((path,), tuple(data.columns) or None, labelled=labelled)},
        metrics=STSB.metrics,
        format=data.format,
        options="--text and --label",
    )


def _stsb(data: TaskDataConfig, splits: tuple[str, ...]) -> tuple[Task, Source]:
    source = data_source(STSB.tfds.name if STSB.tfds else None, data.folder, STSB.splits.values())
    return dataclasses.replace(_STSB, splits={name: STSB.splits[name] for name in splits}), source
