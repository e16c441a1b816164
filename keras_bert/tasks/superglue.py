"""The parts that all tasks of SuperGLUE (Wang et al. 2019) share: files, submissions and published scores.

A task's folder in the zip holds train.jsonl, val.jsonl and test.jsonl. For each task, the server takes a file of JSON
lines with "idx" and "label".
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from keras_bert.config.finetuning import SINGLE_LABEL
from keras_bert.tasks.answer_files import json_line
from keras_bert.tasks.task import PublishedScore, Split, Task, TfdsFields

_AnyTask = TypeVar("_AnyTask", bound=Task)

BOOLQ, CB, COPA, MULTIRC, RECORD = "BoolQ", "CB", "COPA", "MultiRC", "ReCoRD"
RTE, WIC, WSC, AX_B, AX_G = "RTE", "WiC", "WSC", "AX-b", "AX-g"


class SuperGlueTask(NamedTuple):
    """The names of a task's folder in the zip, and of its configuration in TFDS and on the hub."""

    folder: str
    config: str


TASKS = {
    "boolq": SuperGlueTask(BOOLQ, "boolq"),
    "cb": SuperGlueTask(CB, "cb"),
    "copa": SuperGlueTask(COPA, "copa"),
    "multirc": SuperGlueTask(MULTIRC, "multirc"),
    "record": SuperGlueTask(RECORD, "record"),
    "superglue_rte": SuperGlueTask(RTE, "rte"),  # The task `rte` is GLUE's, with the same examples.
    "wic": SuperGlueTask(WIC, "wic"),
    "wsc": SuperGlueTask(WSC, "wsc.fixed"),  # Corrects the spans that did not match the text.
}

# On the test sets: the paper's table 3, with BERT large, cased, fine-tuned on the task alone, and estimates for humans.
_PUBLISHED = {
    BOOLQ: {"accuracy": (77.4, 89.0)},
    CB: {"macro_f1": (75.7, 95.8), "accuracy": (83.6, 98.9)},
    COPA: {"accuracy": (70.6, 100.0)},
    MULTIRC: {"f1a": (70.0, 81.8), "exact": (24.0, 51.9)},
    RECORD: {"f1": (72.0, 91.7), "exact": (71.3, 91.3)},
    RTE: {"accuracy": (71.6, 93.6)},
    WIC: {"accuracy": (69.5, 80.0)},
    WSC: {"accuracy": (64.3, 100.0)},
    AX_B: {"matthews": (23.0, 77.0)},
    AX_G: {"gender_parity": (97.8, 99.3), "accuracy": (51.7, 99.7)},
}
SYSTEMS = ("BERT large", "human")


def tfds_name(task: str) -> str:
    """The name of a task's data set in TFDS."""
    return f"super_glue/{TASKS[task].config if task in TASKS else task}"  # The diagnostic sets are no tasks to train.


def new_task(cls: type[_AnyTask], name: str, folder: str, **fields: Any) -> _AnyTask:
    """A task on texts with one label each; `fields` are its own, in addition to what most share or instead of it."""
    shared = {
        "kind": SINGLE_LABEL,
        "label": "label",
        "labels": ("False", "True"),
        "metrics": ("accuracy",),
        "splits": _splits(folder),
        "folders": (folder,),
        "tfds": TfdsFields(tfds_name(name)),
        "published": published(folder),
    }
    return cls(**{"name": name, **shared, **fields})


def _splits(folder: str) -> dict[str, Split]:
    """The splits of the task with this folder; labels of the test set are hidden."""
    return {
        "train": Split(("train.jsonl",), tfds="train"),
        "dev": Split(("val.jsonl",), tfds="validation"),
        "test": Split(("test.jsonl",), labelled=False, index="idx", tfds="test", submission=f"{folder}.jsonl"),
    }


def published(folder: str) -> tuple[PublishedScore, ...]:
    """The published scores of the task with this folder."""
    return tuple(
        PublishedScore(system, metric, value)
        for metric, values in _PUBLISHED[folder].items()
        for system, value in zip(SYSTEMS, values, strict=True)
    )


def answer_lines(indices: Iterable[object], labels: Iterable[object]) -> Iterator[str]:
    """The lines of a submission."""
    for index, label in zip(indices, labels, strict=True):
        yield json_line({"idx": index, "label": label})
