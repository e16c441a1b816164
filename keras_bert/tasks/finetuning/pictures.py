"""Pictures of a run, as PNG files and on TensorBoard's page of images."""

import io

import numpy as np
import tensorflow as tf

from keras_bert import files, whole_files
from keras_bert.extras import import_extra
from keras_bert.stores import as_os_errors

# Above so many labels the numbers in the squares are not legible.
_MOST_NUMBERS = 20
_MOST_CHARACTERS = 30  # Of a name.


def loss_picture(runs, title="", smoothed=1):
    """PNG bytes: the training loss of each run over its steps, and its validation loss where there is one.

    Args:
        runs: `{name: objects of metrics.jsonl}`.
        title: above the picture.
        smoothed: how many logged figures the drawn one is the mean of.
    """
    figure = _figure(7, 4)
    axes = figure.subplots()
    for name, lines in runs.items():
        training = np.array([(line["step"], line["loss"]) for line in lines if "loss" in line], float).reshape(-1, 2)
        validation = [(line["step"], line["eval_loss"]) for line in lines if "eval_loss" in line]
        values = _running_mean(training[:, 1], smoothed)
        (drawn,) = axes.plot(training[:, 0], values, label=f"{_plain(name)}: training")
        if validation:
            axes.plot(*zip(*validation), "o--", color=drawn.get_color(), label=f"{_plain(name)}: validation")
    axes.set(xlabel="step", ylabel="loss", title=_plain(title), ylim=(0, None))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.legend()
    return _png(figure)


def confusion_picture(matrix, labels, title=""):
    """PNG bytes of [labels, labels] counts: how often each label (row) was predicted as each (column)."""
    matrix = np.asarray(matrix)
    size = min(3 + 0.6 * len(labels), 14)
    figure = _figure(size + 1, size)
    axes = figure.subplots()
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    drawn = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(drawn, label="share of the label's examples", shrink=0.8)
    axes.set(xlabel="predicted", ylabel="label", title=_plain(title))
    labels = list(map(_plain, labels))
    axes.set_xticks(range(len(labels)), labels, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(labels)), labels)
    if len(labels) <= _MOST_NUMBERS:
        for (row, column), count in np.ndenumerate(matrix):
            color = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, f"{count:,}", ha="center", va="center", color=color)
    return _png(figure)


def scores_picture(scores, title=""):
    """PNG bytes: a group of bars a task, one bar a model: the median of its scores, and a line over their range.

    Args:
        scores: `{task: {model: list of per cent, or of None where there is no score}}`, the same models everywhere.
        title: above the picture.
    """
    models = list(next(iter(scores.values())))
    figure = _figure(max(6, 2 + 1.2 * len(scores) + 0.2 * len(scores) * len(models)), 4)
    axes = figure.subplots()
    width = 0.8 / len(models)
    for number, model in enumerate(models):
        values = [by_model[model] for by_model in scores.values()]
        values = [[np.nan if value is None else value for value in found] for found in values]
        places = np.arange(len(scores)) + (number - (len(models) - 1) / 2) * width
        medians = np.array([np.median(found) for found in values])
        ranges = [medians - [min(found) for found in values], [max(found) for found in values] - medians]
        drawn = axes.bar(places, medians, 0.92 * width, yerr=ranges, capsize=2, label=_plain(model))
        axes.bar_label(drawn, [f"{median:.0f}" for median in medians], padding=2, fontsize="small")
    axes.set(ylabel="per cent", title=_plain(title), ylim=(0, 105))
    axes.set_xticks(range(len(scores)), [_plain(task) for task in scores])
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.margins(x=0.8 / (2 * len(scores) + 1))
    figure.legend(loc="outside right upper", frameon=False)
    return _png(figure)


def write_pictures(run, pictures, step):
    """Writes `{name: PNG bytes}` to the run's folder, each as `<name>.png`, and to TensorBoard."""
    for name, png in pictures.items():
        with whole_files.atomic_write(files.join(run.path, f"{name}.png"), "wb") as stream:
            stream.write(png)
    with as_os_errors(run.tensorboard):
        writer = tf.summary.create_file_writer(files.join(run.tensorboard, "validation"))
        with writer.as_default(step=step):
            for name, png in pictures.items():
                tf.summary.image(name, tf.image.decode_png(png, channels=3)[None])
        writer.close()


def _plain(text):
    """A text that is drawn as it is, without formulas, and cut where it would leave the picture no room."""
    if text.startswith("_"):
        text = f" {text}"  # Legends leave out what begins so.
    text = text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"
    return text.replace("$", r"\$")


def _running_mean(values, count):
    sums = np.cumsum(np.concatenate([np.zeros(1), values]))
    begins = np.maximum(np.arange(len(values)) - count + 1, 0)
    ends = np.arange(1, len(values) + 1)
    return (sums[ends] - sums[begins]) / (ends - begins)


def _figure(width, height):
    # Without pyplot there is no window system to choose, and nothing to close.
    figure = import_extra("matplotlib.figure", "Drawing pictures")
    return figure.Figure(figsize=(width, height), layout="constrained")


def _png(figure):
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110)
    return stream.getvalue()
