"""The figures as TensorBoard reads them."""

import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from keras_bert.training.metrics_log import MetricsLog, read_metrics
from keras_bert.training.run_folder import RunFolder


def scalars(folder, tag):
    accumulator = EventAccumulator(folder).Reload()
    return [(event.step, float(tf.make_ndarray(event.tensor_proto))) for event in accumulator.Tensors(tag)]


def test_training_and_validation_share_a_chart(tmp_path):
    """The same tag in two runs; else one has to be looked up under the other."""
    run = RunFolder(str(tmp_path))
    log = MetricsLog(run, 0)
    log.write(1, {"loss": 3.0})
    log.write(2, {"loss": 2.0})
    log.write(2, {"eval_loss": 2.5})
    log.close()
    assert scalars(f"{run.tensorboard}/training", "loss/loss") == [(1, 3.0), (2, 2.0)]
    assert scalars(f"{run.tensorboard}/validation", "loss/loss") == [(2, 2.5)]


def test_the_page_shows_figures_by_kind(tmp_path):
    """Without sections every figure is a closed section of its own."""
    run = RunFolder(str(tmp_path))
    log = MetricsLog(run, 0)
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
