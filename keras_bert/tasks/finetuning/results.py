"""Results as tables for people."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from keras_bert.tasks.benchmarks import Benchmark
from keras_bert.tasks.kind import kind_of_task
from keras_bert.tasks.problem import Problem
from keras_bert.tasks.task import PublishedScore


def results_lines(results: Mapping[str, Any], published: Sequence[PublishedScore] = ()) -> Iterator[str]:
    """A table with a row for each split and metric, next to the scores of trivial answers.

    Args:
        results: what `Finetuning.finetune` or `runs.summary` returns.
        published: scores of others, in rows below.
    """
    several, scale = "over_seeds" in results, per_cent_scale(results["per_cent"])
    figures = ("median", "mean", "std", "best") if several else ("score",)
    overlap = {split: figures for split, figures in results.get("overlap", {}).items() if figures}
    header = ["split", "metric", *figures, baseline_name(results), *["shared pieces"] * bool(overlap)]
    rows = []
    for split, baseline in results["baseline"].items():
        for metric, trivial in baseline.items():
            if metric not in results["splits"][split] or not isinstance(trivial, (int, float)):
                continue
            if several:
                spread = results["over_seeds"][split][metric]
                values = [spread[name] for name in figures]
            else:
                values = [results["splits"][split][metric]]
            cells = [f"{scale * value:.2f}" for value in (*values, trivial)]
            if overlap:
                cells.append(f"{scale * overlap[split][metric]:.2f}" if split in overlap else "-")
            rows.append([split, metric, *cells])
    metrics = {row[1] for row in rows}
    for score in published:
        if score.metric in metrics:
            name = f"{score.system} ({score.split})"
            rows.append([name, score.metric, f"{score.value:.1f}", *["-"] * (len(header) - 3)])
    return table_lines([header, *rows])


def baseline_name(results: Mapping[str, Any]) -> str:
    """What a table calls the trivial answer, such as "majority"."""
    return kind_of_task(results["task"]).baseline


def sweep_lines(found: Sequence[tuple[Mapping[str, float], Mapping[str, Any]]]) -> Iterator[str]:
    """A table of the points of a sweep, as `FinetuningRuns.sweep` returns them."""
    settings = list(found[0][0])
    metric, scale = found[0][1]["main_metric"], per_cent_scale(found[0][1]["per_cent"])
    rows = [[*settings, metric]]
    for point, results in found:
        score = next(iter(results["splits"].values()))[metric]
        rows.append([*(f"{point[name]:g}" for name in settings), f"{scale * score:.2f}"])
    return table_lines(rows)


def evaluation_lines(found: Mapping[str, Mapping[str, Mapping[str, Any]]], problem: Problem) -> Iterator[str]:
    """A table of scores in per cent, with those of others below.

    Args:
        found: `{split: {noise applied to the texts: {metric: score}}}`.
    """
    metrics, scale = problem.metric_names, per_cent_scale(problem.per_cent)
    rows = [["split", "texts", *metrics]]
    for split, by_noise in found.items():
        for noise, figures in by_noise.items():
            rows.append([split, noise, *(f"{scale * figures[metric]:.2f}" for metric in metrics)])
    shown = [score for score in published_beside(found, problem.task) if score.metric in metrics]
    published = {(score.split, score.system, score.metric): score.value for score in shown}
    for split, system in dict.fromkeys(place[:2] for place in published):
        values = (published.get((split, system, metric)) for metric in metrics)
        rows.append([split, system, *("-" if value is None else f"{value:.1f}" for value in values)])
    return table_lines(rows)


def published_beside(splits: Iterable[str], task: Any) -> list[PublishedScore]:
    """The published scores to show beside some splits: for a dev or test split, those of both."""
    beside = {split.replace("test", "dev") for split in splits}
    return [score for score in task.published if score.split.replace("test", "dev") in beside]


def per_cent_scale(is_per_cent: bool) -> int:
    """The factor that turns a task's scores into per cents: 1 if they are per cents already."""
    return 1 if is_per_cent else 100


def table_lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The rows, the header first, as aligned lines: text to the left, numbers to the right."""
    columns = list(zip(*rows))
    widths = [max(map(len, column)) for column in columns]
    is_text = [number == 0 or any(cell[:1].isalpha() for cell in column[1:]) for number, column in enumerate(columns)]
    for row in rows:
        cells = (cell.ljust(width) if left else cell.rjust(width) for cell, width, left in zip(row, widths, is_text))
        yield "  ".join(cells).rstrip()


def benchmark_lines(benchmark: Benchmark, results: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A table with one column per task, the score in per cent, and their average.

    MNLI counts as two columns. Published scores are on the test set; ours on dev.

    Args:
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
    """(the columns, each a (task, split); `{row: scores in per cent}`) of the table of `benchmark_lines`."""
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
    """The heading of a task's column."""
    return {"dev_matched": f"{task}-m", "dev_mismatched": f"{task}-mm"}.get(split, task)
