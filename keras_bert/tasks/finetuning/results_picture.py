"""The tables of results as bars: what was measured beside what was published."""

from collections.abc import Mapping, Sequence
from typing import Any

from keras_bert import whole_files
from keras_bert.tasks.benchmarks import Benchmark
from keras_bert.tasks.finetuning.benchmark_table import benchmark_scores, heading
from keras_bert.tasks.finetuning.pictures import scores_picture
from keras_bert.tasks.finetuning.results_table import per_cent_scale, published_beside
from keras_bert.tasks.problem import Problem
from keras_bert.tasks.task import PublishedScore

_MOST_METRICS = 4

Groups = Mapping[str, Mapping[str, Sequence[float | None]]]  # {group: {bar: scores in per cent}}.


def write_picture(path: str, groups: Groups, title: str) -> None:
    """Writes the bars as a PNG."""
    with whole_files.atomic_write(path, "wb") as stream:
        stream.write(scores_picture(groups, title))


def evaluation_groups(found: Mapping[str, Mapping[str, Mapping[str, Any]]], problem: Problem) -> Groups:
    """A group for each split and metric, of what `results_table.evaluation_lines` shows."""
    scale = per_cent_scale(problem.per_cent)
    groups: dict[str, dict[str, list[float | None]]] = {}
    for split, by_noise in found.items():
        published = published_beside([split], problem.task)
        for metric in problem.metric_names[:_MOST_METRICS]:
            bars: dict[str, list[float | None]] = {
                noise: [scale * figures[metric]] for noise, figures in by_noise.items()
            }
            groups[f"{split} {metric}"] = bars | _published_bars(published, metric)
    return _with_all_bars(groups)


def results_groups(results: Mapping[str, Any], published: Sequence[PublishedScore]) -> Groups:
    """A group for each split and metric, of what `results_table.results_lines` shows; all seeds' scores if several."""
    scale = per_cent_scale(results["per_cent"])
    groups: dict[str, dict[str, list[float | None]]] = {}
    for split, baseline in results["baseline"].items():
        for metric, majority in list(baseline.items())[:_MOST_METRICS]:
            if metric not in results["splits"][split] or not isinstance(majority, (int, float)):
                continue
            spread = results.get("over_seeds", {}).get(split, {}).get(metric)
            values = spread["values"] if spread else [results["splits"][split][metric]]
            bars: dict[str, list[float | None]] = {
                "this model": [scale * value for value in values],
                "majority": [scale * majority],
            }
            groups[f"{split} {metric}"] = bars | _published_bars(published, metric)
    return _with_all_bars(groups)


def benchmark_groups(benchmark: Benchmark, results: Mapping[str, Mapping[str, Any]]) -> Groups:
    """A group for each column of a benchmark's table."""
    columns, rows = benchmark_scores(benchmark, results)
    return {
        heading(*column): {name: [values[number]] for name, values in rows.items()}
        for number, column in enumerate(columns)
    }


def _published_bars(published: Sequence[PublishedScore], metric: str) -> dict[str, list[float | None]]:
    return {f"{score.system} ({score.split})": [score.value] for score in published if score.metric == metric}


def _with_all_bars(groups: Mapping[str, Mapping[str, list[float | None]]]) -> Groups:
    """The groups, each with the bars of all, missing ones as None."""
    names = dict.fromkeys(name for bars in groups.values() for name in bars)
    return {group: {name: bars.get(name, [None]) for name in names} for group, bars in groups.items()}
