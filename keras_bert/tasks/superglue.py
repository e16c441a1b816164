"""The parts that all tasks of SuperGLUE (Wang et al. 2019) share: files, submissions and published scores.

A task's folder in the zip holds train.jsonl, val.jsonl and test.jsonl. For each task, the server takes a file of JSON
lines with "idx" and "label".
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from keras_bert.config.finetuning import SINGLE_LABEL
from keras_bert.tasks.answer_files import json_line
from keras_bert.tasks.task import PublishedScore, Split, Task, TfdsFields

_AnyTask = TypeVar("_AnyTask", bound=Task)


class SuperGlueTask(NamedTuple):
    """A task of the benchmark.

    Attributes:
        folder: the name of its folder in the zip.
        config: that of its configuration in TFDS and on the hub.
        scores: `{metric: the scores of SYSTEMS}` on the test set.
    """

    folder: str
    config: str
    scores: Mapping[str, tuple[float, float]]


# The paper's table 3, with BERT large, cased, fine-tuned on the task alone, and estimates for humans.
SYSTEMS = ("BERT large", "human")
TASKS = {
    "boolq": SuperGlueTask("BoolQ", "boolq", {"accuracy": (77.4, 89.0)}),
    "cb": SuperGlueTask("CB", "cb", {"macro_f1": (75.7, 95.8), "accuracy": (83.6, 98.9)}),
    "copa": SuperGlueTask("COPA", "copa", {"accuracy": (70.6, 100.0)}),
    "multirc": SuperGlueTask("MultiRC", "multirc", {"f1a": (70.0, 81.8), "exact": (24.0, 51.9)}),
    "record": SuperGlueTask("ReCoRD", "record", {"f1": (72.0, 91.7), "exact": (71.3, 91.3)}),
    # The task `rte` is GLUE's, with the same examples.
    "superglue_rte": SuperGlueTask("RTE", "rte", {"accuracy": (71.6, 93.6)}),
    "wic": SuperGlueTask("WiC", "wic", {"accuracy": (69.5, 80.0)}),
    # This configuration corrects the spans that did not match the text.
    "wsc": SuperGlueTask("WSC", "wsc.fixed", {"accuracy": (64.3, 100.0)}),
}
# Answered by a model of RTE.
DIAGNOSTICS = {
    "axb": SuperGlueTask("AX-b", "axb", {"matthews": (23.0, 77.0)}),
    "axg": SuperGlueTask("AX-g", "axg", {"gender_parity": (97.8, 99.3), "accuracy": (51.7, 99.7)}),
}
_ALL = {**TASKS, **DIAGNOSTICS}


def tfds_name(task: str) -> str:
    """The name of a task's data set in TFDS."""
    return f"super_glue/{_ALL[task].config}"


def new_task(cls: type[_AnyTask], name: str, **fields: Any) -> _AnyTask:
    """A task on texts with one label each; `fields` are its own, in addition to what most share or instead of it."""
    folder = _ALL[name].folder
    shared = {
        "kind": SINGLE_LABEL,
        "label": "label",
        "labels": ("False", "True"),
        "metrics": tuple(_ALL[name].scores),
        "splits": splits(folder),
        "folders": (folder,),
        "tfds": TfdsFields(tfds_name(name)),
        "published": published(name),
    }
    return cls(**{"name": name, **shared, **fields})


def splits(folder: str) -> dict[str, Split]:
    """The splits of the task with this folder; labels of the test set are hidden."""
    return {
        "train": Split(("train.jsonl",), tfds="train"),
        "dev": Split(("val.jsonl",), tfds="validation"),
        "test": Split(("test.jsonl",), labelled=False, index="idx", tfds="test", submission=f"{folder}.jsonl"),
    }


def published(task: str) -> tuple[PublishedScore, ...]:
    """The published scores of a task."""
    return tuple(
        PublishedScore(system, metric, value)
        for metric, values in _ALL[task].scores.items()
        for system, value in zip(SYSTEMS, values, strict=True)
    )


def answer_lines(indices: Iterable[object], labels: Iterable[object]) -> Iterator[str]:
    """The lines of a submission."""
    for index, label in zip(indices, labels, strict=True):
        yield json_line({"idx": index, "label": label})
