"""The multiple-choice tasks, as data."""

from collections.abc import Mapping
from dataclasses import dataclass

from keras_bert.tasks import superglue
from keras_bert.tasks.task import PublishedScore


@dataclass(frozen=True)
class ChoiceTask:
    """A multiple-choice task, as data.

    Attributes:
        name: as in `--task NAME`.
        patterns: the names that the file of each split may have in a folder; see `split_files.FilePatterns`.
        tfds: TFDS's name of each split; None if TFDS does not have the task.
        data_set: TFDS's name of the data set.
        folders: names of the task's folder inside its benchmark's.
        submission: the name of the file with the answers to the test split that the benchmark expects.
        published: published scores.
    """

    name: str
    patterns: Mapping[str, tuple[str, ...]]
    tfds: Mapping[str, str] | None = None
    data_set: str | None = None
    folders: tuple[str, ...] = ()
    submission: str | None = None
    published: tuple[PublishedScore, ...] = ()


SWAG = ChoiceTask(
    "swag",
    {"train": ("train.csv",), "dev": ("val.csv", "dev.csv"), "test": ("test.csv",)},
    {"train": "train", "dev": "validation", "test": "test"},
    "swag",
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
    {"train": ("train.jsonl",), "dev": ("val.jsonl",), "test": ("test.jsonl",)},
    {"train": "train", "dev": "validation", "test": "test"},
    superglue.tfds_name("copa"),
    (superglue.COPA,),
    f"{superglue.COPA}.jsonl",
    superglue.published(superglue.COPA),
)
CHOICE = ChoiceTask(
    "choice",
    {"train": ("train.jsonl", "*train*.jsonl"), "dev": ("dev.jsonl", "*dev*.jsonl"), "test": ("test.jsonl",)},
)
MULTIPLE_CHOICE = {task.name: task for task in (SWAG, COPA, CHOICE)}
