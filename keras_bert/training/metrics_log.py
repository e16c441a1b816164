"""metrics.jsonl and TensorBoard, kept in step with the checkpoints."""

import json
import math
import time

import tensorflow as tf

from keras_bert import files
from keras_bert.stores import as_os_errors

# An object store takes the whole file anew with every flush, and some take one a second.
_SECONDS_BETWEEN_UPLOADS = 30.0

# TensorBoard's pages show one section for all names before the same slash.
_SECTIONS = {
    "learning_rate": "optimizer",
    "grad_norm": "optimizer",
    "cpu_seconds": "speed",
    "examples_per_second": "speed",
    "tokens_per_second": "speed",
    "data_wait_fraction": "speed",
    "flops_utilization": "speed",
}


class MetricsLog:
    """Writes one JSON object a logged step, and the same figures as TensorBoard scalars.

    Lines are in the file at once; in a store those of a validation are, and all after half a minute and at `flush`.
    TensorBoard gets two runs, `training` and `validation`, so that `loss/mlm_loss` and the like of both share a chart.

    Args:
        run: the `RunFolder`.
        step: steps done so far. Lines of later steps, left by a run that was stopped after its last
            checkpoint, are dropped, because those steps will be done again.
    """

    def __init__(self, run, step):
        self._run = run
        self._path = run.metrics_file
        lines = [line for line in read_metrics(run.metrics_file) if line["step"] <= step]
        with files.atomic_write(self._path) as stream:
            stream.writelines(json.dumps(line) + "\n" for line in lines)
        self._stream = files.open_file(self._path, "a")
        self._seconds_between_flushes = _SECONDS_BETWEEN_UPLOADS if files.is_remote(self._path) else 0.0
        self._flushed = time.monotonic()
        self._tensorboard = run.tensorboard
        with as_os_errors(self._tensorboard):
            self._writers = {
                name: tf.summary.create_file_writer(files.join(run.tensorboard, name))
                for name in ("training", "validation")
            }

    def write(self, step, figures):
        """`figures`: `{name: number}`, in the order in which they are to be read."""
        # JSON has no infinity or NaN.
        plain = {name: value if math.isfinite(value) else None for name, value in figures.items()}
        self._stream.write(json.dumps({"step": step, **plain}) + "\n")
        is_validation = any(name.startswith("eval_") for name in figures)
        if is_validation or time.monotonic() - self._flushed >= self._seconds_between_flushes:
            self.flush()
        with as_os_errors(self._tensorboard):
            for name, value in figures.items():
                writer = self._writers["validation" if name.startswith("eval_") else "training"]
                with writer.as_default(step=step):
                    tf.summary.scalar(_tag(name), value)

    def table(self, step, name, rows):
        """Rows of strings in Markdown, the header first, for TensorBoard's text page."""
        with as_os_errors(self._tensorboard), self._writers["validation"].as_default(step=step):
            tf.summary.text(name, tf.constant(rows))

    def flush(self):
        """Puts every line into the file: before a checkpoint, because steps before one are never logged again.

        Raises `UserError` where the run's folder is another process's by now; see `RunFolder.require_own`.
        """
        self._run.require_own()
        self._stream.flush()
        self._flushed = time.monotonic()

    def close(self):
        self._stream.close()
        with as_os_errors(self._tensorboard):
            for writer in self._writers.values():
                writer.close()


def _tag(name):
    """TensorBoard's name of a figure: the same for training and validation, under the section that it is shown in."""
    name = name.removeprefix("eval_")
    is_loss = name.endswith("loss") or name == "perplexity"
    return f"{_SECTIONS.get(name, 'loss' if is_loss else 'score')}/{name}"


class NoMetricsLog:
    """For the workers that write nothing."""

    def write(self, step, figures):
        pass

    def table(self, step, name, rows):
        pass

    def flush(self):
        pass

    def close(self):
        pass


def read_metrics(path):
    """The objects of a metrics.jsonl; a last line cut off by a kill is left out."""
    if not files.exists(path):
        return []
    lines = []
    with files.open_file(path) as stream:
        for line in stream.read().decode("utf-8", "replace").splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:
                break
    return lines
