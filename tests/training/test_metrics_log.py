"""The figures as TensorBoard reads them, and as they are read back."""

import re

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import plugin_data_pb2

from keras_bert.training.metrics_log import MetricsLog, read_metrics
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.run_loggers import TensorBoardLogger


def scalars(folder, tag):
    accumulator = EventAccumulator(folder).Reload()
    return [(event.step, float(tf.make_ndarray(event.tensor_proto))) for event in accumulator.Tensors(tag)]


def tensorboard_log(run, step):
    return MetricsLog(run, step, [TensorBoardLogger(run)])


def test_training_and_validation_share_a_chart(tmp_path):
    """The same tag in two runs; otherwise each would have a chart of its own."""
    run = RunFolder(str(tmp_path))
    log = tensorboard_log(run, 0)
    log.write(1, {"loss": 3.0})
    log.write(2, {"loss": 2.0})
    log.write(2, {"eval_loss": 2.5})
    log.close()
    assert scalars(f"{run.tensorboard}/training", "loss/loss") == [(1, 3.0), (2, 2.0)]
    assert scalars(f"{run.tensorboard}/validation", "loss/loss") == [(2, 2.5)]


def test_the_page_shows_figures_by_kind(tmp_path):
    """Without sections every figure is a closed section of its own."""
    run = RunFolder(str(tmp_path))
    log = tensorboard_log(run, 0)
    log.write(1, {"mlm_loss": 3.0, "mlm_accuracy": 0.5, "learning_rate": 0.1, "tokens_per_second": 7.0})
    log.write(1, {"grad_norm": 2.0, "grad_norm_block_0": 1.0})
    log.write(1, {"eval_perplexity": 20.0})
    log.close()
    tags = EventAccumulator(f"{run.tensorboard}/training").Reload().Tags()["tensors"]
    figures = {"loss/mlm_loss", "score/mlm_accuracy", "optimizer/learning_rate", "speed/tokens_per_second"}
    assert set(tags) == {*figures, "optimizer/grad_norm", "gradients/grad_norm_block_0"}
    assert scalars(f"{run.tensorboard}/validation", "loss/perplexity") == [(1, 20.0)]


def test_a_store_gets_lines_when_they_are_needed():
    """Each flush uploads the whole file; a validation is read back at once, and a checkpoint must not be ahead."""
    run = RunFolder("ram://metrics-log")
    log = MetricsLog(run, 0)
    seen = []
    for step, figures in enumerate(({"loss": 3.0}, {"eval_loss": 2.5}, {"loss": 2.0}), start=1):
        log.write(step, figures)
        seen.append(len(read_metrics(run.metrics_file)))
    log.flush()
    assert [*seen, len(read_metrics(run.metrics_file))] == [0, 2, 2, 3]
    log.close()
    log = MetricsLog(run, 2)
    log.write(3, {"loss": 1.0})
    log.close()
    assert [line.get("loss") for line in read_metrics(run.metrics_file)] == [3.0, None, 1.0]


def test_steps_done_again_are_shown_once(tmp_path):
    """After a resume and after a rollback; TensorBoard used to show both passes, as a curve that goes back."""
    run = RunFolder(str(tmp_path))
    for first in (0, 2):  # A run killed after step 4, with a checkpoint of step 2.
        log = tensorboard_log(run, first)
        for step in range(first + 1, 5):
            log.write(step, {"loss": 10.0 * first + step})
            log.write(step, {"eval_loss": 10.0 * first + step})
        if first:
            log.rewind(3, [])
            log.write(4, {"loss": 34.0})
        log.close()
        for path in () if first else tmp_path.glob("tensorboard/*/*"):
            path.rename(str(path).replace("tfevents.1", "tfevents.0"))  # An older one; names have no parts of a second.
    for name, last in (("training", [34.0]), ("validation", [])):
        events = EventMultiplexer().AddRunsFromDirectory(run.tensorboard).Reload().Tensors(name, "loss/loss")
        assert [float(tf.make_ndarray(event.tensor_proto)) for event in events] == [1.0, 2.0, 23.0, *last]


def test_tensorboard_drops_what_an_older_version_wrote_too(tmp_path):
    """It takes the first start of a session for the run's beginning, and older versions wrote none."""
    run = RunFolder(str(tmp_path))
    with tf.summary.create_file_writer(f"{run.tensorboard}/training").as_default():
        for step in (1, 2, 3):
            tf.summary.scalar("loss/loss", 9.0, step)
    tensorboard_log(run, 1).close()
    assert scalars(f"{run.tensorboard}/training", "loss/loss") == [(1, 9.0)]


def test_the_unigram_is_a_line_in_the_chart_of_the_loss(tmp_path):
    """As a point in a chart of its own, it would not show whether a run has come below it."""
    run = RunFolder(str(tmp_path))
    for first, steps in ((0, (4, 8)), (4, (8, 12))):  # Resumed from step 4.
        log = tensorboard_log(run, first)
        for step in steps:
            log.write(step, {"eval_mask_token_loss": 5.0, "eval_mask_token_unigram_loss": 6.0})
        log.close()
    events = EventMultiplexer().AddRunsFromDirectory(run.tensorboard).Reload()
    assert [event.step for event in events.Tensors("unigram", "loss/mask_token_loss")] == [0, 4, 8, 12]
    assert set(events.Runs()["validation"]["tensors"]) == {"loss/mask_token_loss"}


def test_a_run_has_its_page_of_charts_and_its_row_among_hyperparameters(tmp_path):
    """Checked by what TensorBoard's plugins read; only sweeps used to have both pages."""
    run = RunFolder(str(tmp_path))
    config = {"init": "m", "optimizer": {"learning_rate": 0.5}, "training": {"seed": 3, "log_to": ["tensorboard"]}}
    TensorBoardLogger(run, config, {"loss of all": "(mask|text)_token_loss"}).close(True)
    events = EventAccumulator(f"{run.tensorboard}/validation").Reload()
    layout = tf.make_ndarray(events.Tensors("custom_scalars__config__")[0].tensor_proto).item()
    charts = layout_pb2.Layout.FromString(layout).category[0].chart
    assert [chart.title for chart in charts] == ["loss of all", "learning rate", "tokens per second"]
    assert re.match(charts[0].multiline.tag[0], "loss/mask_token_loss")
    assert not re.match(charts[0].multiline.tag[0], "loss/mask_token_loss_of_others")
    content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    start = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info
    assert set(start.hparams) == {"init", "optimizer.learning_rate", "training.seed"}
    assert start.group_name == run.path  # Otherwise runs that differ in nothing listed would become one row.


@pytest.mark.parametrize("length", [{"minutes": 5.0}, {"steps": 100}, {"epochs": 2.0}])
def test_the_row_among_hyperparameters_has_the_length_that_counts(tmp_path, length):
    """A run of five minutes used to be listed with three epochs, or with a recipe's default of a million steps.

    So was one that had gone on, with the length that it began with, because TensorBoard keeps a run's first row.
    """
    run, others = RunFolder(str(tmp_path)), {"minutes": 0.0, "steps": 0, "epochs": 3.0}
    for share in (0.5, 1):
        grown = {name: value * share for name, value in length.items()}
        TensorBoardLogger(run, {"training": {**others, **grown}}).close(True)
    content = EventAccumulator(f"{run.tensorboard}/validation").Reload().SummaryMetadata("_hparams_/session_start_info")
    start = plugin_data_pb2.HParamsPluginData.FromString(content.plugin_data.content).session_start_info
    assert {name: value.number_value for name, value in start.hparams.items()} == {
        f"training.{name}": value for name, value in length.items()
    }


def test_a_damaged_line_costs_itself_alone(tmp_path):
    """All lines after it used to be lost to every picture and table and, once the run was resumed, for good."""
    run = RunFolder(str(tmp_path))
    lines = [
        b'{"step": 1, "loss": 3.0}',
        b'{"step": 2, "lo\x00\xff',
        b"[2]",
        b"{}",
        b'{"step": 3, "loss": 1.0}',
        b'{"st',
    ]
    with open(run.metrics_file, "wb") as stream:
        stream.write(b"\n".join(lines))
    assert [line["step"] for line in read_metrics(run.metrics_file)] == [1, 3]
    log = MetricsLog(run, 3)
    log.write(4, {"loss": 0.5})
    log.close()
    assert [line["step"] for line in read_metrics(run.metrics_file)] == [1, 3, 4]
