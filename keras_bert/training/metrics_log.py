"""metrics.jsonl and TensorBoard, kept in step with the checkpoints."""

import json
import math

import tensorflow as tf

from keras_bert import files


class MetricsLog:
    """Writes one JSON object a logged step, and the same figures as TensorBoard scalars.

    Args:
        run: the `RunFolder`.
        step: steps done so far. Lines of later steps, left by a run that was stopped after its last
            checkpoint, are dropped, because those steps will be done again.
    """

    def __init__(self, run, step):
        self._path = run.metrics_file
        lines = [line for line in read_metrics(run.metrics_file) if line["step"] <= step]
        with files.atomic_write(self._path) as stream:
            stream.writelines(json.dumps(line) + "\n" for line in lines)
        self._stream = open(self._path, "a", encoding="utf-8", buffering=1)
        self._writer = tf.summary.create_file_writer(run.tensorboard)

    def write(self, step, figures):
        """`figures`: `{name: number}`, in the order in which they are to be read."""
        # JSON has no infinity or NaN.
        plain = {name: value if math.isfinite(value) else None for name, value in figures.items()}
        self._stream.write(json.dumps({"step": step, **plain}) + "\n")
        with self._writer.as_default(step=step):
            for name, value in figures.items():
                group = "validation" if name.startswith("eval_") else "training"
                tf.summary.scalar(f"{group}/{name}", value)

    def close(self):
        self._stream.close()
        self._writer.close()


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
