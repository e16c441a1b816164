"""metrics.jsonl and TensorBoard, kept in step with the checkpoints."""

import json
import operator
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from keras_bert.core import files, whole_files
from keras_bert.core.stores import as_os_errors
from keras_bert.training.run_folder import RunFolder

# Every flush uploads the whole file to an object store again, and some stores accept one write a second.
_SECONDS_BETWEEN_UPLOADS = 30.0

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
}


class MetricsLog:
    """Writes one JSON object per logged step, and the same figures as TensorBoard scalars.

    Each line reaches the file at once. In a store, a validation uploads at once, anything else after half a minute or
    at `flush`. TensorBoard gets two runs, `training` and `validation`, so that both share charts such as
    `loss/mlm_loss`.

    Args:
        run: the run's folder.
        step: steps done so far. Lines of later steps, left by a run that was stopped after its last checkpoint, are
            dropped, because those steps will be done again.
    """

    def __init__(self, run: RunFolder, step: int):
        self._run = run
        self._path = run.metrics_file
        self._open(line for line in read_metrics(self._path) if line["step"] <= step)
        self._seconds_between_flushes = _SECONDS_BETWEEN_UPLOADS if files.is_remote(self._path) else 0.0
        self._flushed = time.monotonic()
        self._tensorboard = run.tensorboard
        with as_os_errors(self._tensorboard):
            self._writers = {
                name: tf.summary.create_file_writer(files.join(run.tensorboard, name))
                for name in ("training", "validation")
            }
        self._forget_after(step)

    def _forget_after(self, step: int) -> None:
        """Makes TensorBoard drop what it has read of steps after `step`, which is what a restart of a session does.

        `tf.summary` has no `purge_step` any more. TensorBoard takes the first start of a run for its beginning and
        drops nothing, and older versions wrote none, hence two.
        """
        start = tf.compat.v1.Event(wall_time=time.time(), step=step + 1)
        start.session_log.status = tf.compat.v1.SessionLog.START
        with as_os_errors(self._tensorboard):
            for writer in self._writers.values():
                for _ in range(2):
                    tf.raw_ops.ImportEvent(writer=writer._resource, event=start.SerializeToString())

    def _open(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Opens the file for further lines after these."""
        with whole_files.atomic_write(self._path) as stream:
            stream.writelines(whole_files.json_text(line) + "\n" for line in lines)
        self._stream = files.open_file(self._path, "a")

    def rewind(self, step: int, rollbacks: Iterable[Mapping[str, Any]]) -> None:
        """Drops the lines of steps after `step`; each of the rollbacks has its line behind those of its `step`."""
        self._stream.close()
        lines = [line for line in read_metrics(self._path) if line["step"] <= step and "rollback" not in line]
        self._open(sorted([*lines, *rollbacks], key=operator.itemgetter("step")))
        self._forget_after(step)

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        """Writes one line, the figures in the given order; see `json_text` for those that are not finite."""
        self._stream.write(whole_files.json_text({"step": step, **figures}) + "\n")
        is_validation = any(name.startswith("eval_") for name in figures)
        if is_validation or time.monotonic() - self._flushed >= self._seconds_between_flushes:
            self._send()
        with as_os_errors(self._tensorboard):
            for name, value in figures.items():
                writer = self._writers["validation" if name.startswith("eval_") else "training"]
                with writer.as_default(step=step):
                    tf.summary.scalar(_tag(name), value)

    def table(self, step: int, name: str, rows: Sequence[Sequence[str]]) -> None:
        """Writes a table to TensorBoard's text page: rows of Markdown cells, the header first."""
        with as_os_errors(self._tensorboard), self._writers["validation"].as_default(step=step):
            tf.summary.text(name, tf.constant(rows))

    def flush(self) -> None:
        """Writes all lines to the disk. Call before a checkpoint: steps before a checkpoint are never logged again.

        Raises `UserError` if another process has taken over the run's folder; see `RunFolder.require_own`.
        """
        self._send()
        if not files.is_remote(self._path):
            os.fsync(self._stream.fileno())  # A power cut must not take lines of steps that a checkpoint has.

    def _send(self) -> None:
        self._run.require_own()
        self._stream.flush()
        self._flushed = time.monotonic()

    def close(self) -> None:
        self._stream.close()
        with as_os_errors(self._tensorboard):
            for writer in self._writers.values():
                writer.close()


def _tag(name: str) -> str:
    """The figure's name in TensorBoard, with its section; the same for training and validation."""
    name = name.removeprefix("eval_")
    if name.startswith("grad_norm_"):
        return f"gradients/{name}"
    is_loss = name.endswith("loss") or name == "perplexity"
    return f"{_SECTIONS.get(name, 'loss' if is_loss else 'score')}/{name}"


class NoMetricsLog:
    """Stands in for `MetricsLog` in workers that write nothing."""

    def rewind(self, step: int, rollbacks: Iterable[Mapping[str, Any]]) -> None:
        pass

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        pass

    def table(self, step: int, name: str, rows: Sequence[Sequence[str]]) -> None:
        pass

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def read_metrics(path: str) -> list[dict[str, Any]]:
    """The objects in a metrics.jsonl, without lines that are damaged, such as a last one cut off by a kill."""
    if not files.exists(path):
        return []
    with files.open_file(path) as stream:
        found = map(_read_line, stream.read().split(b"\n"))
    return [line for line in found if isinstance(line, dict) and isinstance(line.get("step"), int)]


def _read_line(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
