"""The table of a benchmark: which figure stands for a task, and what is averaged."""

from keras_bert.tasks.benchmarks import BENCHMARKS
from keras_bert.tasks.finetuning.results import benchmark_lines


def results(main, split="dev", **scores):
    return {
        "main_metric": main,
        "splits": {split: {"loss": 0.5, **scores}},
        "baseline": {split: dict.fromkeys(scores, 0.25)},
    }


def cells(name, found):
    return [line.split("  ") for line in benchmark_lines(BENCHMARKS[name], found)]


def row(name, found, number):
    return [cell.strip() for cell in cells(name, found)[number] if cell.strip()]


def test_superglue_averages_the_means_of_each_tasks_metrics():
    """CB counts once, by F1 and accuracy; the published averages are over the same tasks."""
    found = {"cb": results("macro_f1", macro_f1=0.5, accuracy=0.7), "boolq": results("accuracy", accuracy=0.8)}
    assert row("superglue", found, 0) == ["boolq", "cb", "average"]
    assert row("superglue", found, 1) == ["this model (dev)", "80.0", "60.0", "70.0"]
    assert row("superglue", found, 2) == ["majority (dev)", "25.0", "25.0", "25.0"]
    assert row("superglue", found, 3) == ["BERT large (test)", "77.4", "79.7", "78.5"]


def test_glue_averages_the_main_metrics_without_wnli():
    found = {"wnli": results("accuracy", accuracy=0.1), "mrpc": results("f1", f1=0.9, accuracy=0.5)}
    assert row("glue", found, 0) == ["mrpc", "wnli", "average"]
    assert row("glue", found, 1) == ["this model (dev)", "90.0", "10.0", "90.0"]
    assert row("glue", found, 3) == ["BERT base (test)", "88.9", "-", "88.9"]
