"""The multiple-choice tasks, as data."""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from keras_bert.tasks import superglue
from keras_bert.tasks.examples.sources import TfdsSource
from keras_bert.tasks.multiple_choice.examples import (
    ChoiceRow,
    copa_rows,
    copa_tfds_rows,
    own_rows,
    swag_or_own_rows,
    swag_rows,
)
from keras_bert.tasks.task import PublishedScore


@dataclass(frozen=True)
class ChoiceTask:
    """A multiple-choice task, as data.

    Attributes:
        name: as in `--task NAME`.
        rows: reads a file, or "-", stdin.
        patterns: the names that the file of each split may have in a folder; see `split_files.FilePatterns`.
        tfds: TFDS's name of each split; None if TFDS does not have the task.
        data_set: TFDS's name of the data set.
        tfds_rows: (one of those names, the source) -> (the origin for messages, the rows).
        folders: names of the task's folder inside its benchmark's.
        submission: the name of the file with the answers to the test split that the benchmark expects.
        published: published scores.
    """

    name: str
    rows: Callable[[str], Iterator[ChoiceRow]]
    patterns: Mapping[str, tuple[str, ...]]
    tfds: Mapping[str, str] | None = None
    data_set: str | None = None
    tfds_rows: Callable[[str, TfdsSource], tuple[str, Iterator[ChoiceRow]]] | None = None
    folders: tuple[str, ...] = ()
    submission: str | None = None
    published: tuple[PublishedScore, ...] = ()


SWAG = ChoiceTask(
    "swag",
    functools.partial(swag_or_own_rows, swag_rows),
    {"train": ("train.csv",), "dev": ("val.csv", "dev.csv"), "test": ("test.csv",)},
    # The paper's table 4; humans from Zellers et al. 2018, an expert on 100 examples and the majority of five others.
    published=tuple(
        PublishedScore(system, "accuracy", value, split)
        for system, split, value in (
            ("BERT base", "dev", 81.6),
            ("BERT large", "dev", 86.6),
            ("BERT large", "test", 86.3),
            ("human expert", "test", 85.0),
            ("human, five", "test", 88.0),
        )
    ),
)
COPA = ChoiceTask(
    "copa",
    copa_rows,
    {"train": ("train.jsonl",), "dev": ("val.jsonl",), "test": ("test.jsonl",)},
    {"train": "train", "dev": "validation", "test": "test"},
    superglue.tfds_name("copa"),
    copa_tfds_rows,
    (superglue.COPA,),
    f"{superglue.COPA}.jsonl",
    superglue.published(superglue.COPA),
)
CHOICE = ChoiceTask(
    "choice",
    functools.partial(swag_or_own_rows, own_rows),
    {"train": ("train.jsonl", "*train*.jsonl"), "dev": ("dev.jsonl", "*dev*.jsonl"), "test": ("test.jsonl",)},
)
MULTIPLE_CHOICE = {task.name: task for task in (SWAG, COPA, CHOICE)}
