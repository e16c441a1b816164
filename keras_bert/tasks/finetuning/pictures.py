"""Pictures of a run."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keras_bert.core import files, whole_files
from keras_bert.core.drawing import ACCENT, INK, PAGE, PALE, TITLE, new_figure, plain, png, tidy
from keras_bert.tasks.benchmarks import Benchmark
from keras_bert.tasks.finetuning.results import (
    baseline_name,
    benchmark_scores,
    heading,
    per_cent_scale,
    published_beside,
)
from keras_bert.tasks.problem import Problem
from keras_bert.tasks.task import PublishedScore
from keras_bert.training.run_folder import RunFolder

# With more labels, the numbers in the cells are not legible.
_MOST_NUMBERS = 20
_PANELS = 3  # Side by side.

Bars = Mapping[str, Sequence[float | None]]  # {bar: scores in per cent}.
Groups = Mapping[str, Bars]


def loss_picture(runs: Mapping[str, Sequence[Mapping[str, Any]]], title: str = "", smoothed: int = 1) -> bytes:
    """PNG of the training loss of each run over its steps, and of its validation loss if it has one.

    Args:
        runs: `{name: objects of metrics.jsonl}`.
        smoothed: how many logged figures to average for each point.
    """
    figure = new_figure(PAGE, 4)
    axes = figure.subplots()
    for name, lines in runs.items():
        # A figure that was not finite is null.
        training, validation = (
            np.array([(line["step"], line[key]) for line in lines if line.get(key) is not None]).reshape(-1, 2)
            for key in ("loss", "eval_loss")
        )
        values = _running_mean(training[:, 1], smoothed)
        (drawn,) = axes.plot(training[:, 0], values, label=f"{plain(name)}: training")
        if len(validation):
            axes.plot(*validation.T, "o--", color=drawn.get_color(), label=f"{plain(name)}: validation")
    axes.set(xlabel="step", ylabel="loss", title=plain(title, TITLE), ylim=(0, None))
    axes.xaxis.get_major_locator().set_params(integer=True)
    tidy(axes)
    axes.legend(frameon=False)
    return png(figure)


def confusion_picture(matrix: ArrayLike, labels: Sequence[str], title: str = "") -> bytes:
    """PNG of a confusion matrix [labels, labels]: how often each label (row) was predicted as each (column)."""
    matrix = np.asarray(matrix)
    size = min(3 + 0.6 * len(labels), 14)
    figure = new_figure(size + 1, size)
    axes = figure.subplots()
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    drawn = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(drawn, label="share of the label's examples", shrink=0.8)
    axes.set(xlabel="predicted", ylabel="label", title=plain(title))
    names = list(map(plain, labels))
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(names)), names)
    if len(labels) <= _MOST_NUMBERS:
        for (row, column), count in np.ndenumerate(matrix):
            color = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, f"{count:,}", ha="center", va="center", color=color)
    return png(figure)


def scores_picture(scores: Groups, title: str = "") -> bytes:
    """PNG with a panel per task and a bar per model, as long as the median of its scores, with a line for their range.

    The bar of a task's greatest median is darker.

    Args:
        scores: `{task: {model: scores in per cent, None for a missing one}}`, with the same models for every task.
    """
    models = list(next(iter(scores.values())))
    columns = min(len(scores), _PANELS)
    rows = -(-len(scores) // columns)
    figure = new_figure(PAGE, bool(title) * 0.4 + rows * (0.5 + 0.26 * len(models)))
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False).flatten()
    for axes, (task, by_model) in zip(panels, scores.items()):
        values = [[np.nan if score is None else score for score in by_model[model]] for model in models]
        medians = np.array([np.median(found) for found in values])
        ranges = [medians - [min(found) for found in values], [max(found) for found in values] - medians]
        best = np.nanmax([-np.inf, *medians])
        colors = [ACCENT if median == best else PALE for median in medians]
        lines = {"xerr": ranges, "ecolor": INK, "capsize": 2} if np.any(np.nan_to_num(ranges)) else {}
        drawn = axes.barh(range(len(models)), medians, 0.75, color=colors, **lines)
        axes.bar_label(drawn, ["" if np.isnan(median) else f"{median:.1f}" for median in medians], padding=3)
        axes.set_title(plain(task), fontsize="medium")
        least, most = np.nanmin([0.0, *(medians - ranges[0])]), max(1.0, np.nanmax([0.0, *(medians + ranges[1])]))
        axes.set_xlim(least and least - 0.3 * (most - least), most + 0.25 * (most - least))
        axes.set_xticks([])
        tidy(axes, "x")
        axes.spines["bottom"].set_visible(False)
    panels[0].set_yticks(range(len(models)), [plain(model) for model in models])
    panels[0].invert_yaxis()
    for axes in panels:
        axes.tick_params(axis="y", length=0)
    for axes in panels[len(scores) :]:
        axes.set_axis_off()
    figure.suptitle(plain(title, TITLE))
    return png(figure)


def write_pictures(run: RunFolder, pictures: Mapping[str, bytes]) -> None:
    """Writes PNGs to the run's folder, `{name: PNG}`, each as NAME.png."""
    for name, picture in pictures.items():
        whole_files.write_file(files.join(run.path, f"{name}.png"), picture)


def _running_mean(values: np.ndarray, count: int) -> np.ndarray:
    sums = np.cumsum(np.concatenate([np.zeros(1), values]))
    begins = np.maximum(np.arange(len(values)) - count + 1, 0)
    ends = np.arange(1, len(values) + 1)
    return (sums[ends] - sums[begins]) / (ends - begins)


_MOST_METRICS = 4


def write_picture(path: str, groups: Groups, title: str) -> None:
    """Writes the bars as a PNG."""
    whole_files.write_file(path, scores_picture(groups, title))


def evaluation_groups(found: Mapping[str, Mapping[str, Mapping[str, Any]]], problem: Problem) -> Groups:
    """A group for each split and metric that `results.evaluation_lines` shows."""
    scale = per_cent_scale(problem.per_cent)
    groups: dict[str, Bars] = {}
    for split, by_noise in found.items():
        published = published_beside([split], problem.task)
        for metric in problem.metric_names[:_MOST_METRICS]:
            ours = {noise: [scale * figures[metric]] for noise, figures in by_noise.items()}
            groups[f"{split} {metric}"] = {**ours, **_published_bars(published, metric)}
    return _with_all_bars(groups)


def results_groups(results: Mapping[str, Any], published: Sequence[PublishedScore]) -> Groups:
    """A group for each split and metric that `results.results_lines` shows, with the scores of all seeds."""
    scale = per_cent_scale(results["per_cent"])
    groups: dict[str, Bars] = {}
    for split, baseline in results["baseline"].items():
        for metric, trivial in list(baseline.items())[:_MOST_METRICS]:
            if metric not in results["splits"][split] or not isinstance(trivial, (int, float)):
                continue
            spread = results.get("over_seeds", {}).get(split, {}).get(metric)
            values = spread["values"] if spread else [results["splits"][split][metric]]
            groups[f"{split} {metric}"] = {
                "this model": [scale * value for value in values],
                baseline_name(results): [scale * trivial],
                **_published_bars(published, metric),
            }
    return _with_all_bars(groups)


def benchmark_groups(benchmark: Benchmark, results: Mapping[str, Mapping[str, Any]]) -> Groups:
    """A group for each column of a benchmark's table."""
    columns, rows = benchmark_scores(benchmark, results)
    return {
        heading(*column): {name: [values[number]] for name, values in rows.items()}
        for number, column in enumerate(columns)
    }


def _published_bars(published: Sequence[PublishedScore], metric: str) -> Bars:
    return {f"{score.system} ({score.split})": [score.value] for score in published if score.metric == metric}


def _with_all_bars(groups: Groups) -> Groups:
    """The groups, each with the bars of all groups; those that it lacks are None."""
    names = dict.fromkeys(name for bars in groups.values() for name in bars)
    return {group: {name: bars.get(name, [None]) for name in names} for group, bars in groups.items()}
