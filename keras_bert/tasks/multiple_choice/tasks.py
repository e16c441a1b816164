"""The multiple-choice tasks, as data."""

from collections.abc import Mapping
from dataclasses import dataclass

from keras_bert.tasks.task import PublishedScore


@dataclass(frozen=True)
class ChoiceTask:
    """A multiple-choice task, as data.

    Attributes:
        name: as in `--task NAME`.
        patterns: the names that the file of each split may have in a folder; see `split_files.FilePatterns`.
        tfds: TFDS's name of each split; None if TFDS does not have the task.
        published: published scores.
    """

    name: str
    patterns: Mapping[str, tuple[str, ...]]
    tfds: Mapping[str, str] | None = None
    published: tuple[PublishedScore, ...] = ()


SWAG = ChoiceTask(
    "swag",
    {"train": ("train.csv",), "dev": ("val.csv", "dev.csv"), "test": ("test.csv",)},
    {"train": "train", "dev": "validation", "test": "test"},
    # The paper's table 4; humans from Zellers et al. 2018, an expert on 100 examples and the majority of five others.
    tuple(
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
CHOICE = ChoiceTask(
    "choice",
    {"train": ("train.jsonl", "*train*.jsonl"), "dev": ("dev.jsonl", "*dev*.jsonl"), "test": ("test.jsonl",)},
)
MULTIPLE_CHOICE = {task.name: task for task in (SWAG, CHOICE)}
