"""What receives a run's figures besides metrics.jsonl: TensorBoard, Weights & Biases, MLflow."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import summary as custom_scalar
from tensorboard.plugins.hparams import api as hparams
from tensorboard.plugins.scalar.summary_v2 import scalar_pb

from keras_bert.config.training import RunConfig
from keras_bert.core import files, imports, settings, whole_files
from keras_bert.core.errors import UserError
from keras_bert.core.stores import as_os_errors
from keras_bert.core.yaml_and_json import read_if_there, read_yaml
from keras_bert.training.goodput import PARTS
from keras_bert.training.run_folder import RunFolder

# TensorBoard groups names by the part before the slash.
_SECTIONS = {
    "learning_rate": "optimizer",
    "grad_norm": "optimizer",
    "loss_scale": "optimizer",
    "skipped_steps": "optimizer",
    "cpu_seconds": "speed",
    "examples_per_second": "speed",
    "tokens_per_second": "speed",
    "data_wait_fraction": "speed",
    "flops_utilization": "speed",
    **dict.fromkeys(("goodput", *PARTS), "speed"),
}
_TRAINING, _VALIDATION, _UNIGRAM = "training", "validation", "unigram"  # TensorBoard's runs.
# Settings for TensorBoard's page HPARAMS, which shows five at first, those in which the runs differ before the others.
_COMPARED = (
    "init",
    "model.hidden_size",
    "model.num_hidden_layers",
    "optimizer.learning_rate",
    "phases.0.batch_size",
    "task",
    "training.batch_size",
    "training.epochs",
    "training.minutes",
    "training.seed",
    "training.steps",
)
_LENGTHS = ("training.minutes", "training.steps", "training.epochs")  # The first that is not 0 is a run's length.
# Charts for TensorBoard's page CUSTOM SCALARS, after those of the kind of run.
_CHARTS = {"learning rate": "learning_rate", "tokens per second": "tokens_per_second"}


class RunLogger:
    """Receives the figures of one run, from the chief.

    Attributes:
        keeps: whether it keeps what it was sent, so that figures of steps that are done again are not sent again.
    """

    keeps = True

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        """Sends the figures of one line of metrics.jsonl, with their names there."""
        raise NotImplementedError

    def table(self, step: int, name: str, rows: Sequence[Sequence[str]]) -> None:
        """Sends a table, rows of Markdown cells with the header first, where it can be shown."""

    def forget_after(self, step: int) -> None:
        """Drops the figures of steps after `step`, unless it `keeps` them."""

    def close(self, is_whole: bool) -> None:
        """Ends the run for now; `is_whole`: it has come to its end."""


class TensorBoardLogger(RunLogger):
    """Writes TensorBoard's events, as two runs, `training` and `validation`, which share charts.

    The unigram's loss is a third run, so that it appears as a line in the chart of the loss, for comparison.

    Args:
        config: the run's settings, for the page HPARAMS.
        charts: `{title: figure}` for the page CUSTOM SCALARS; a figure is a regular expression.
    """

    keeps = False

    def __init__(
        self, run: RunFolder, config: Mapping[str, Any] | None = None, charts: Mapping[str, str] | None = None
    ):
        self._folder = run.tensorboard
        self._writers: dict[str, tf.summary.SummaryWriter] = {}
        had_unigram = bool(files.list_folder(files.join(self._folder, _UNIGRAM)))
        with as_os_errors(self._folder):
            for name in (_TRAINING, _VALIDATION, *[_UNIGRAM] * had_unigram):
                self._open(name)
            if config:
                flat = settings.flattened(config)
                unused = {*_LENGTHS} - {next((key for key in _LENGTHS if flat.get(key)), None)}
                compared = {key: flat[key] for key in _COMPARED if key not in unused and flat.get(key) is not None}
                row = Event(wall_time=time.time(), summary=hparams.hparams_pb(compared, trial_id=run.path))
                # With the validation, whose figures HPARAMS compares. A run's first row counts, so one of an earlier
                # start, which may have had fewer steps, is replaced: by a file that sorts before all others.
                with tf.io.TFRecordWriter(files.join(self._folder, _VALIDATION, "events.out.tfevents.0")) as writer:
                    writer.write(row.SerializeToString())
            if charts:
                with self._writers[_VALIDATION].as_default(step=0):
                    tf.summary.experimental.write_raw_pb(_layout({**charts, **_CHARTS}))

    def _open(self, name: str) -> None:
        self._writers[name] = tf.summary.create_file_writer(files.join(self._folder, name))

    def forget_after(self, step: int) -> None:
        """Makes TensorBoard drop what it has read of later steps, by writing the start of a session.

        `tf.summary` has no `purge_step` any more. Two starts are written, because TensorBoard takes a run's first for
        its beginning and drops nothing, and older versions wrote none.
        """
        start = tf.compat.v1.Event(wall_time=time.time(), step=step + 1)
        start.session_log.status = tf.compat.v1.SessionLog.START
        with as_os_errors(self._folder):
            for writer in self._writers.values():
                for _ in range(2):
                    tf.raw_ops.ImportEvent(writer=writer._resource, event=start.SerializeToString())

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        of_run: dict[str, dict[str, float]] = {}
        with as_os_errors(self._folder):
            for name, value in figures.items():
                if name.endswith("_unigram_loss"):
                    self._write_unigram(step, name.replace("_unigram_loss", "_loss"), value)
                else:
                    of_run.setdefault(_VALIDATION if name.startswith("eval_") else _TRAINING, {})[_tag(name)] = value
            for run, values in of_run.items():
                self._scalars(run, values, step)

    def _write_unigram(self, step: int, name: str, value: float) -> None:
        """Writes a loss that is the same at all steps, also at 0, so that a line shows from the first validation on."""
        if _UNIGRAM not in self._writers:
            self._open(_UNIGRAM)
            self._scalars(_UNIGRAM, {_tag(name): value}, 0)
        self._scalars(_UNIGRAM, {_tag(name): value}, step)

    def _scalars(self, run: str, values: Mapping[str, float], step: int) -> None:
        with self._writers[run].as_default(step=step):
            _write_scalars(values)

    def table(self, step: int, name: str, rows: Sequence[Sequence[str]]) -> None:
        with as_os_errors(self._folder), self._writers[_VALIDATION].as_default(step=step):
            tf.summary.text(name, tf.constant(rows))

    def close(self, is_whole: bool) -> None:
        with as_os_errors(self._folder):
            for writer in self._writers.values():
                writer.close()


def add_to_tensorboard(
    run: RunFolder, step: int, pictures: Mapping[str, bytes], figures: Mapping[str, float] | None = None
) -> None:
    """Adds what was found once the steps were done: PNGs for the page IMAGES, and figures by their tags."""
    with as_os_errors(run.tensorboard):
        writer = tf.summary.create_file_writer(files.join(run.tensorboard, _VALIDATION))
        with writer.as_default(step=step):
            for name, picture in pictures.items():
                tf.summary.image(name, tf.image.decode_png(picture, channels=3)[None])
            if figures:
                _write_scalars(figures)
        writer.close()


def _write_scalars(values: Mapping[str, float]) -> None:
    """Writes scalars by their tags in one operation; `tf.summary.scalar` takes a dozen for each."""
    # Concatenated protocol buffers are one buffer with the lists of all.
    summary = b"".join(scalar_pb(tag, value).SerializeToString() for tag, value in values.items())
    tf.summary.experimental.write_raw_pb(summary)


def _tag(name: str) -> str:
    """The figure's name in TensorBoard, with its section; the same for training and validation."""
    name = name.removeprefix("eval_")
    if name.startswith("grad_norm_"):
        return f"gradients/{name}"
    is_loss = name.endswith("loss") or name == "perplexity"
    return f"{_SECTIONS.get(name, 'loss' if is_loss else 'score')}/{name}"


def _layout(charts: Mapping[str, str]) -> bytes:
    multiline = layout_pb2.MultilineChartContent
    shown = [
        layout_pb2.Chart(title=title, multiline=multiline(tag=[f"{_tag(figure)}$"])) for title, figure in charts.items()
    ]
    category = layout_pb2.Category(title="The run at a glance", chart=shown)
    return custom_scalar.pb(layout_pb2.Layout(category=[category])).SerializeToString()


class WandbLogger(RunLogger):
    """Logs to Weights & Biases, whose environment variables say where and how: WANDB_PROJECT, WANDB_MODE and so on."""

    def __init__(self, run: RunFolder, config: Mapping[str, Any]):
        wandb, known = imports.import_extra("wandb", "training.log_to wandb"), _known_ids(run).get("wandb")
        more: dict[str, Any] = {"id": known, "resume": "allow"} if known else {"config": config}
        if not files.is_remote(run.path):
            more["dir"] = os.environ.get("WANDB_DIR", run.path)
        with _explained("wandb", wandb.Error):
            self._run = wandb.init(name=_shown_name(run), reinit="create_new", **more)
        _keep_id(run, "wandb", self._run.id)

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        self._run.log(dict(figures), step=step)

    def close(self, is_whole: bool) -> None:
        self._run.finish(exit_code=0 if is_whole else 1)


class MlflowLogger(RunLogger):
    """Logs to MLflow, whose environment variables say where: MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME and so on."""

    def __init__(self, run: RunFolder, config: Mapping[str, Any]):
        mlflow, known = imports.import_extra("mlflow", "training.log_to mlflow"), _known_ids(run).get("mlflow")
        self._mlflow = mlflow
        with _explained("mlflow", mlflow.exceptions.MlflowException):
            started = mlflow.start_run(run_id=known, run_name=None if known else _shown_name(run), nested=True)
            self._id = started.info.run_id
            if not known:
                mlflow.log_params(_mlflow_names(settings.flattened(config)), run_id=self._id)
        _keep_id(run, "mlflow", self._id)

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        # In another thread: a step does not wait for the service, and its failure does not end the run.
        self._mlflow.log_metrics(_mlflow_names(figures), step=step, run_id=self._id, synchronous=False)

    def close(self, is_whole: bool) -> None:
        self._mlflow.flush_async_logging()
        self._mlflow.end_run("FINISHED" if is_whole else "KILLED")


def _mlflow_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, under names without the characters that MLflow refuses, which labels and patterns may have."""
    return {re.sub(r"[^\w./ -]", "_", name): value for name, value in values.items()}


@contextlib.contextmanager
def _explained(service: str, kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kind as error:
        raise UserError(
            f"training.log_to: {service} could not start ({' '.join(str(error).split())}). Mend that, or leave "
            f"{service} out; the run goes on from where it is."
        ) from None


def _shown_name(run: RunFolder) -> str:
    return os.path.basename(run.path.rstrip("/"))


_SENT = "sent"  # Beside the ids of services.


def _ids_file(run: RunFolder) -> str:
    return files.join(run.path, "loggers.json")


def _known_ids(run: RunFolder) -> dict[str, Any]:
    """The services' ids of this run that an earlier start recorded, so that logging continues there."""
    return read_if_there(_ids_file(run))


def _keep_id(run: RunFolder, service: str, number: str) -> None:
    whole_files.write_json(_ids_file(run), {**_known_ids(run), service: number})


def sent_before(run: RunFolder) -> tuple[int, bool]:
    """What `keep_sent` was given last; (0, False) before that."""
    step, is_validation = _known_ids(run).get(_SENT, (0, False))
    return step, is_validation


def keep_sent(run: RunFolder, place: tuple[int, bool]) -> None:
    """Records that the services have received lines up to `place`, which metrics.jsonl is about to lose."""
    whole_files.write_json(_ids_file(run), {**_known_ids(run), _SENT: place})


_SERVICES: dict[str, Callable[[RunFolder, Mapping[str, Any]], RunLogger]] = {
    "wandb": WandbLogger,
    "mlflow": MlflowLogger,
}


def require_loggers(training: RunConfig) -> None:
    """Raises `UserError` if the package of one of `training.log_to` is not installed."""
    for name in training.log_to:
        if name in _SERVICES:
            imports.require(name, f"training.log_to {name}")


def open_loggers(run: RunFolder, training: RunConfig, charts: Mapping[str, str]) -> list[RunLogger]:
    """The loggers of `training.log_to`, given the settings in the run's folder.

    Args:
        charts: see `TensorBoardLogger`.
    """
    config = read_yaml(run.config_file)
    kinds: dict[str, Callable[..., RunLogger]] = {
        "tensorboard": functools.partial(TensorBoardLogger, charts=charts),
        **_SERVICES,
    }
    return [kinds[name](run, config) for name in training.log_to]
