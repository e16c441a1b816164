"""The multiple-choice tasks, as data."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ChoiceTask:
    """A multiple-choice task, as data.

    Attributes:
        name: as in `--task NAME`.
        patterns: the names that the file of each split may have in a folder; see `split_files.FilePatterns`.
        tfds: TFDS's name of each split; None if TFDS does not have the task.
    """

    name: str
    patterns: Mapping[str, tuple[str, ...]]
    tfds: Mapping[str, str] | None = None


SWAG = ChoiceTask(
    "swag",
    {"train": ("train.csv",), "dev": ("val.csv", "dev.csv"), "test": ("test.csv",)},
    {"train": "train", "dev": "validation", "test": "test"},
)
CHOICE = ChoiceTask(
    "choice",
    {"train": ("train.jsonl", "*train*.jsonl"), "dev": ("dev.jsonl", "*dev*.jsonl"), "test": ("test.jsonl",)},
)
MULTIPLE_CHOICE = {task.name: task for task in (SWAG, CHOICE)}
