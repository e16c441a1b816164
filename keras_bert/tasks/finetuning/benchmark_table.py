"""The results of a benchmark's tasks in one table, with their average."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keras_bert.tasks.benchmarks import Benchmark
from keras_bert.tasks.finetuning.results_table import table_lines


def benchmark_lines(benchmark: Benchmark, results: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A table with one column per task, the score in per cent, and their average.

    MNLI counts as two columns. Published scores are on the test set; ours on dev.

    Args:
        benchmark: the benchmark.
        results: `{task: results}` of the tasks that were run.
    """
    columns, rows = benchmark_scores(benchmark, results)
    header = ["", *(heading(task, split) for task, split in columns), "average"]
    averaged = [index for index, (task, _) in enumerate(columns) if task not in benchmark.apart]
    lines = [header]
    for name, values in rows.items():
        average = _mean([values[index] for index in averaged])
        lines.append([name, *("-" if value is None else f"{value:.1f}" for value in (*values, average))])
    return table_lines(lines)


def benchmark_scores(
    benchmark: Benchmark, results: Mapping[str, Mapping[str, Any]]
) -> tuple[list[tuple[str, str]], dict[str, list[float | None]]]:
    """(the columns, (task, split) each; `{row: scores in per cent}`), as for `benchmark_lines`."""
    columns = [(task, split) for task in benchmark.columns if task in results for split in results[task]["splits"]]
    rows: dict[str, list[float | None]] = {"this model (dev)": [], "majority (dev)": []}
    rows |= {f"{system} (test)": [] for system in benchmark.systems}
    for task, split in columns:
        ours, majority = results[task]["splits"][split], results[task]["baseline"][split]
        metrics = list(majority) if benchmark.means else [results[task]["main_metric"]]
        rows["this model (dev)"].append(_mean([100 * ours[metric] for metric in metrics]))
        rows["majority (dev)"].append(_mean([100 * majority[metric] for metric in metrics]))
        test = split.replace("dev", "test")
        published = {(score.system, score.metric, score.split): score.value for score in benchmark.published(task)}
        for system in benchmark.systems:
            rows[f"{system} (test)"].append(_mean([published.get((system, metric, test)) for metric in metrics]))
    return columns, rows


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean; None if a value is missing, or there are none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def heading(task: str, split: str) -> str:
    return {"dev_matched": f"{task}-m", "dev_mismatched": f"{task}-mm"}.get(split, task)
