"""The tasks of multiple choice, as data alone."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ChoiceTask:
    """A task of multiple choice, as data.

    Attributes:
        name: as in `--task NAME`.
        patterns: split to the names that its file may have in a folder, for `split_files.find_split_files`.
        tfds: split to TFDS's name of it; None where TFDS does not have the task.
    """

    name: str
    patterns: dict
    tfds: dict | None = None


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
