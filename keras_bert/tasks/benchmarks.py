"""Benchmarks of several tasks; `--task NAME` fine-tunes a model on each task in turn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keras_bert.tasks import superglue
from keras_bert.tasks.classification.benchmarks import GLUE
from keras_bert.tasks.task import PublishedScore


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of several tasks.

    Attributes:
        name: as in `--task NAME`.
        title: its usual name.
        tasks: the names of the tasks to train.
        columns: these names in the order of its table.
        systems: the systems whose published scores are shown.
        published: function (task) -> its published scores.
        means: whether a task's score is the mean of all its metrics rather than its main one.
        apart: the tasks left out of the average.
    """

    name: str
    title: str
    tasks: Sequence[str]
    columns: Sequence[str]
    systems: Sequence[str]
    published: Callable[[str], Sequence[PublishedScore]]
    means: bool = False
    apart: Sequence[str] = ()


_GLUE = tuple(name for name, task in GLUE.items() if not task.trained_by)
BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        # The average leaves out WNLI, as in BERT's paper.
        Benchmark(
            "glue",
            "GLUE",
            _GLUE,
            (*(name for name in _GLUE if name not in ("wnli", "mnli")), "mnli", "wnli"),
            ("BERT base", "BERT large", "human"),
            lambda name: GLUE[name].published,
            apart=("wnli",),
        ),
        Benchmark(
            "superglue",
            "SuperGLUE",
            tuple(superglue.TASKS),
            tuple(superglue.TASKS),
            superglue.SYSTEMS,
            superglue.published,
            means=True,
        ),
    )
}
