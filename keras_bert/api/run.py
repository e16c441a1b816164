"""A run's folder from Python: its results, metrics and model, and what the model can do."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keras_bert.api.given_data import GivenData
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.core import drawing, files
from keras_bert.core.errors import UserError
from keras_bert.core.imports import import_extra
from keras_bert.training.run_folder import RunFolder

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from keras_bert.inference.loading import LoadedModel


class Run:
    """A run, finished or not, in its folder.

    Args:
        path: the run's folder.

    Attributes:
        path: the run's folder.

    Raises:
        UserError: there is no such folder.

    Example:
        run = keras_bert.Run("runs/demo")
        run.model.encode(["The cat sat."]).shape
    """

    path: str

    def __init__(self, path: str | os.PathLike[str]):
        self.path = os.fspath(path)
        if not files.is_folder(self.path):
            raise UserError(f"{self.path}: needs the folder of a run. Received: no folder. Give the run's output.")
        self._folder = RunFolder(self.path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"

    def __fspath__(self) -> str:
        return self.path

    @property
    def results(self) -> dict[str, Any]:
        """The content of results.json; {} until the run is finished."""
        return self._folder.results() or {}

    @property
    def history(self) -> pandas.DataFrame:
        """The metrics in metrics.jsonl, a row for each logged step; validation metrics begin with `eval_`.

        After several seeds they are those of the best run. Raises `UserError` if pandas is not installed.
        """
        pandas = import_extra("pandas", "A run's history")
        return pandas.DataFrame(self._figures())

    @functools.cached_property
    def model(self) -> LoadedModel:
        """The trained model, the best of several seeds or validations. Raises `UserError` if there is none yet."""
        from keras_bert.inference.loading import load  # Imports TensorFlow.

        return load(self.path)

    def plot(self) -> Figure:
        """Draws the loss over the steps, in training and in validation. Raises `UserError` without matplotlib."""
        figure = drawing.new_figure(drawing.PAGE, 3.2)
        axes = figure.subplots()
        for name, label, color in (("loss", "training", drawing.PALE), ("eval_loss", "validation", drawing.ACCENT)):
            points = [(line["step"], line[name]) for line in self._figures() if line.get(name) is not None]
            if points:
                # A single validation is a point, which has no line.
                axes.plot(*zip(*points), marker="." if len(points) < 50 else None, label=label, color=color)
        axes.set(xlabel="step", ylabel="loss")
        axes.xaxis.get_major_locator().set_params(integer=True)
        drawing.tidy(axes)
        axes.legend(frameon=False)
        return figure

    def predict(self, texts: Sequence[Any], top_k: int | None = None) -> list[Any]:
        """The answer to each example, by `LoadedModel.predict`."""
        return self.model.predict(texts, top_k)

    def export(self, folder: str | os.PathLike[str], dtype: str = "float32", compute: str = "float32") -> str:
        """Writes the model as a SavedModel for TensorFlow Serving: strings in, answers out.

        Args:
            folder: receives a sub-folder for each version: 1, 2, ….
            dtype: how weights are stored: float32, bfloat16 or float16.
            compute: the type of the encoder's products: float32, or bfloat16 for processors with bfloat16 arithmetic.

        Returns: the folder of the version written.
        """
        from keras_bert.export.saved_model import write_version
        from keras_bert.export.serving_function import serving_function

        return write_version(os.fspath(folder), serving_function(self.model, dtype, compute=compute))

    def _figures(self) -> list[dict[str, Any]]:
        from keras_bert.training.metrics_log import read_metrics  # Imports TensorFlow, for its loggers.

        best = self.results.get("best_seed")
        folder = self._folder if best is None else RunFolder(files.join(self.path, f"seed-{best}"))
        return read_metrics(folder.metrics_file)


class PretrainingRun(Run):
    """A pretraining run, as returned by `keras_bert.pretrain`."""


class FinetuningRun(Run):
    """A fine-tuning run, as returned by `keras_bert.finetune`."""

    def evaluate(
        self, data: Any = None, split: str = "dev", *, text: str | Sequence[str] | None = None, label: str | None = None
    ) -> dict[str, float]:
        """Scores the model on labelled examples.

        Args:
            data: examples, as for `keras_bert.finetune`; None for a split of the task.
            split: the split, if no data are given.
            text, label: the columns, if their names differ from those in training.

        Returns: `{metric: score}`, the main metric first.

        Raises:
            UserError: the data have no labels, or cannot be read.
        """
        from keras_bert.tasks.finetuned_model import FinetunedModel  # Imports TensorFlow.

        folder = open_model_folder(self.path)
        changes: dict[str, Any] = {} if text is None else {"texts": [text] if isinstance(text, str) else list(text)}
        changes |= {} if label is None else {"label": label}
        with contextlib.ExitStack() as stack:
            if data is not None:
                # Not in the run's folder, where another evaluation may write too, or nobody may.
                given = GivenData(stack.enter_context(tempfile.TemporaryDirectory()))
                changes["dev"] = given.source("evaluated", data)
                given.write()
                split = "dev"
            finetuned = FinetunedModel(folder, changes)
            scores = {one: finetuned.evaluate(one) for one in finetuned.splits(split)}
        if len(scores) == 1:
            return next(iter(scores.values()))
        return {f"{one} {name}": value for one, figures in scores.items() for name, value in figures.items()}
