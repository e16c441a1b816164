"""Integers that GPUs hold as int64: they change where a batch lies, not what a step computes."""

import numpy as np
import pytest
import tensorflow as tf
from tiny import model_and_optimizer, pretraining_batch, tiny_config

import keras_bert.training.device_integers as integers
from keras_bert.models.pretraining import PretrainingObjective
from keras_bert.training.step import Step


def test_a_gpu_gets_no_int32_and_a_cpu_the_batches_as_they_are(monkeypatch):
    """With one int32 the GPU waits for the host between all steps; on a CPU a cast would only take time."""
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    batch = pretraining_batch(tiny_config(), batch=4, seq=12, seed=0)
    dataset = tf.data.Dataset.from_tensors(batch)
    plain = next(iter(integers.distribute_to_steps(strategy, dataset)))
    monkeypatch.setattr(integers, "on_gpus", lambda strategy: True)
    wide = next(iter(integers.distribute_to_steps(strategy, dataset)))
    assert {name: value.dtype for name, value in plain.items()} == {name: of.dtype for name, of in batch.items()}
    assert {value.dtype for value in wide.values()} == {tf.int64, tf.float32}
    for name, value in integers.narrowed(wide).items():
        assert value.dtype == plain[name].dtype
        np.testing.assert_array_equal(value, plain[name])


@pytest.mark.slow
def test_a_step_computes_the_same_of_wide_integers():
    strategy, config = tf.distribute.OneDeviceStrategy("CPU:0"), tiny_config(num_hidden_layers=1)
    batch = pretraining_batch(config, batch=4, seq=12, seed=0)
    seen = []
    for given in (batch, integers.widened(batch)):
        model, optimizer = model_and_optimizer(strategy, config, 1)
        step = Step(strategy, model, PretrainingObjective(4), optimizer)
        trained, evaluated = step.train(given, tf.constant(0, tf.int64)), step.evaluate(given)
        seen.append([float(trained["grad_norm"]), float(evaluated["sums"]["mlm"]["loss"])])
    assert seen[0] == seen[1]
