"""Fine-tuning against training from scratch: the losses over the steps, and in a plane around each end."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert.core.drawing import INK, PAGE, TITLE, new_figure, plain, png
from keras_bert.core.errors import UserError
from keras_bert.data.batches.length_batches import LengthBatches, choose_shapes
from keras_bert.studies.runs import StudyRun
from keras_bert.studies.study import Findings, StudyFolder, rows_of_markdown
from keras_bert.tasks.finetuned_model import FinetunedModel
from keras_bert.tasks.finetuning.pictures import loss_picture
from keras_bert.tasks.finetuning.results import per_cent_scale
from keras_bert.training.metrics_log import read_metrics
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.step import Step
from keras_bert.training.strategy import make_strategy

_DIRECTIONS = 2


class LossPlane:
    """A plane through a model's weights along two random directions with the norms of the weights themselves.

    Each direction is Gaussian noise, scaled so that every filter has the norm of the model's own: a kernel's column for
    one output, an embedding table's row. Biases and LayerNorm stay fixed (Li et al. 2018, section 4). So a step of 1
    changes the weights of any model by their own norm.

    Args:
        model: the model, whose own weights are restored after each call.
        loss: function () -> the loss with the current weights.
    """

    def __init__(self, model: keras.Model, loss: Callable[[], float]):
        self._variables = model.trainable_variables
        self._loss = loss
        self._start = [np.array(variable) for variable in self._variables]
        random = np.random.default_rng(0)
        self._directions = [
            [filter_normalized(random, variable.name, value) for variable, value in zip(self._variables, self._start)]
            for _ in range(_DIRECTIONS)
        ]

    def __call__(self, x: float, y: float) -> float:
        """The loss after a step of `x` along the first direction and `y` along the second."""
        first, second = self._directions
        for variable, start, along, across in zip(self._variables, self._start, first, second):
            variable.assign(start + x * along + y * across)
        try:
            return float(self._loss())
        finally:
            for variable, start in zip(self._variables, self._start):
                variable.assign(start)


def filter_normalized(random: np.random.Generator, name: str, weights: np.ndarray) -> np.ndarray:
    """Noise in the shape of `weights`, each filter with its norm there; 0 for biases and LayerNorm.

    Args:
        name: the variable's name; the filters of a `kernel` or `recurrent_kernel` [inputs, outputs] are its columns,
            those of other variables their rows.
    """
    if weights.ndim < 2 or name.endswith("bias"):  # A GRU's bias is [2, outputs].
        return np.zeros_like(weights)
    axis = 0 if name.endswith("kernel") else -1
    noise = random.standard_normal(weights.shape).astype(weights.dtype)
    lengths = np.linalg.norm(weights, axis=axis, keepdims=True)
    return noise * lengths / np.linalg.norm(noise, axis=axis, keepdims=True)


def steps(radius: float, count: int) -> Sequence[float]:
    """The coordinates of a grid on one axis: `count`, an odd number, from -radius to radius."""
    return np.linspace(-radius, radius, count).round(6).tolist()


ENDS = ("pretrained", "scratch")
_BATCH = 32
_SHAPES = 4  # Widths of the batches, each of which is traced.
_LEVELS = 20
_SMOOTHED = 5  # Each drawn loss is the mean of this many logged ones.

Grid = list[list[float]]  # [y][x]


def landscape(
    study: StudyFolder,
    task: str,
    init: str,
    data: str | None,
    changes: Mapping[str, Any],
    scratch_changes: Mapping[str, Any],
    radius: float,
    points: int,
    examples: int,
) -> Findings:
    """Fine-tunes a model and the same one from random weights, and draws the training loss around each one's end.

    Args:
        study: the study's folder; the runs are pretrained and scratch in it.
        data: the folder of the task's files; None for TFDS's own.
        scratch_changes: settings of the run from scratch only, such as a higher learning rate.
        radius: how far the plane reaches, as a multiple of the norm of the weights.
        points: points of the grid on each axis, an odd number, so that the end is the middle one.
        examples: training examples to measure the loss on, rounded down to whole batches, at least one.

    Raises:
        UserError: `points` is even, or the folder's content was made with other settings.
    """
    if points % 2 == 0:
        raise UserError(f"--points: needs an odd number, for a middle. Received: {points}. Give {points + 1}.")
    options: dict[str, str | None] = {"--task": task, "--init": init, **({"--data-dir": data} if data else {})}
    from_scratch: dict[str, str | None] = {**options, "--from-scratch": None}
    planned = {
        "pretrained": StudyRun(study.join("pretrained"), "finetune", options, changes),
        "scratch": StudyRun(study.join("scratch"), "finetune", from_scratch, {**changes, **scratch_changes}),
    }
    runs = study.made({name: functools.partial(_finetuned, run) for name, run in planned.items()}, "Fine-tuned")
    grids = {
        # The scores tell this run from one with the same settings that was removed by hand.
        name: _grid(study, name, {**run.provenance, "scores": runs[name]["splits"]}, radius, points, examples)
        for name, run in planned.items()
    }
    curves = {name: read_metrics(RunFolder(study.join(name)).metrics_file) for name in ENDS}
    pictures = {
        "losses": loss_picture(curves, f"{task}: training loss", _SMOOTHED),
        "planes": planes_picture(grids, radius, f"{task}: loss around each end"),
    }
    return Findings(f"Fine-tuning against scratch: {task}", list(table(runs, grids)), pictures)


def _finetuned(run: StudyRun) -> dict[str, Any]:
    return run.results() or run.make()


def _grid(study: StudyFolder, name: str, run: Mapping[str, Any], radius: float, points: int, examples: int) -> Grid:
    """The losses around the end of a run, row by row; `run` identifies it."""
    about = {"run": run, "radius": radius, "points": points, "examples": examples}
    # Loaded only if a row is not measured yet.
    plane = functools.cache(lambda: training_plane(study.join(name), examples))
    places = steps(radius, points)

    def row(y: float) -> list[float]:
        return [plane()(x, y) for x in places]

    parts = {
        number + 1: study.kept(f"{name}/row-{number}", about, functools.partial(row, y))
        for number, y in enumerate(places)
    }
    return list(study.made(parts, "Measured", f"{name}, row {{}} of {len(places)}").values())


def training_plane(run: str, examples: int) -> LossPlane:
    """The plane around a run's exported weights, of the loss on the first of its training examples in random order."""
    finetuned = FinetunedModel(run)
    rows = finetuned.problem.rows("train")
    widths, groups = choose_shapes(rows, _SHAPES)
    pad_id = finetuned.tokenizer.vocabulary.pad_id
    source = LengthBatches(rows, _BATCH, 0, pad_id, widths, sizes=groups)
    batches = list(source.epoch(0).take(max(examples // _BATCH, 1)))
    step = Step(make_strategy("one"), finetuned.model, finetuned.problem.objective)
    return LossPlane(finetuned.model, functools.partial(_mean_loss, step, batches))


def _mean_loss(step: Step, batches: Sequence[Mapping[str, Any]]) -> float:
    found = [step.evaluate(batch) for batch in batches]
    terms = step.objective.terms
    return sum(
        float(sum(one["sums"][term]["loss"] for one in found)) / float(sum(one["counts"][term] for one in found))
        for term in terms
    )


def table(runs: Mapping[str, Mapping[str, Any]], grids: Mapping[str, Grid]) -> Iterator[str]:
    """Lines of Markdown, a row for each end."""
    rows = []
    for name, results in runs.items():
        split, metric = next(iter(results["splits"])), results["main_metric"]
        losses = np.array(grids[name])
        middle = losses[len(losses) // 2, len(losses) // 2]
        edge = np.concatenate([losses[0], losses[-1], losses[1:-1, 0], losses[1:-1, -1]])
        score = f"{split} {metric} {per_cent_scale(results['per_cent']) * results['splits'][split][metric]:.1f}"
        rows.append([name, score, f"{middle:.3f}", f"{np.median(edge):.3f}", f"{(losses < 2 * middle).mean():.0%}"])
    header = ["", "score", "training loss at the end", "median at the plane's edge"]
    header += ["share of the plane below twice the loss at the end"]
    return rows_of_markdown(header, rows)


def planes_picture(grids: Mapping[str, Grid], radius: float, title: str) -> bytes:
    """PNG of the loss around each end, with the same colours; blank where it is not finite."""
    figure = new_figure(PAGE, 1 + PAGE / (len(grids) + 0.5))
    losses = {name: np.ma.masked_invalid(grid) for name, grid in grids.items()}
    finite = np.concatenate([values.compressed() for values in losses.values()])
    least, most = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    levels = np.linspace(least, most if most > least else least + 1.0, _LEVELS)
    drawn: Any = None
    for axes, (name, values) in zip(figure.subplots(1, len(losses), squeeze=False)[0], losses.items()):
        places = steps(radius, len(values))
        drawn = axes.contourf(places, places, values, levels=levels, cmap="Blues")
        axes.contour(places, places, values, levels=levels, colors="white", linewidths=0.4)
        axes.plot(0, 0, "+", color=INK, markersize=12)
        axes.set(title=plain(name), xlabel="first direction", ylabel="second direction", aspect="equal")
    figure.colorbar(drawn, ax=figure.axes, label="training loss", format="%.2f", shrink=0.8)
    figure.suptitle(plain(title, TITLE))
    return png(figure)
