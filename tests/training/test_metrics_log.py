"""The figures as TensorBoard reads them."""

import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from keras_bert.training.metrics_log import MetricsLog
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
    assert scalars(f"{run.tensorboard}/training", "loss") == [(1, 3.0), (2, 2.0)]
    assert scalars(f"{run.tensorboard}/validation", "loss") == [(2, 2.5)]
