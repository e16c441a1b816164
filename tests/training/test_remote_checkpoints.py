"""Checkpoints of variables on another machine, and of one replica that restore on two and back."""

import subprocess
import sys
import types

import numpy as np
import pytest
import tensorflow as tf
from said import silent
from tiny import model_and_optimizer, pretraining_batch, without_dropout

from keras_bert.cli.launch import free_ports
from keras_bert.models.pretraining import PretrainingObjective
from keras_bert.training.checkpoints import Checkpoints
from keras_bert.training.step import Step
from keras_bert.training.strategy import checkpoint_device

HOST = """
import sys, tensorflow as tf
tf.distribute.Server({"worker": [sys.argv[1]]}, job_name="worker").join()
"""
CLIENT = """
import sys, tensorflow as tf
tf.config.experimental_connect_to_host(sys.argv[1], job_name="worker")
from keras_bert.training.checkpoints import Checkpoints
with tf.device("/job:worker/replica:0/task:0/device:CPU:0"):
    variable = tf.Variable([1.0, 2.0])
checkpoints = Checkpoints("unused", 1, io_device="/job:localhost", variable=variable)
checkpoints._checkpoint.write("ram://run/checkpoint", checkpoints._options)
variable.assign([0.0, 0.0])
checkpoints._checkpoint.read("ram://run/checkpoint", checkpoints._options).assert_existing_objects_matched()
print("restored", *variable.numpy(), tf.io.gfile.glob("ram://run/*.index"))
"""


def tpu_strategy(*devices):
    """A TPUStrategy that knows its devices and nothing else; making a real one needs a TPU."""
    strategy = object.__new__(tf.distribute.TPUStrategy)
    strategy._extended = types.SimpleNamespace(worker_devices=devices)
    return strategy


def test_this_host_writes_for_a_remote_tpu_and_for_nothing_else(mirrored_strategy):
    """The option breaks a run of several workers, which know no job named localhost."""
    assert checkpoint_device(tpu_strategy("/job:worker/replica:0/task:0/device:TPU:0")) == "/job:localhost"
    assert checkpoint_device(tpu_strategy("/job:localhost/replica:0/task:0/device:TPU:0")) is None
    assert checkpoint_device(mirrored_strategy) is None
    assert checkpoint_device(tf.distribute.OneDeviceStrategy("CPU:0")) is None


@pytest.mark.slow
def test_variables_elsewhere_are_written_into_this_process():
    """`ram://` is the memory of one process: what another one wrote there would not be seen here."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    host = subprocess.Popen([sys.executable, "-c", HOST, address], stderr=subprocess.DEVNULL)
    try:
        arguments = [sys.executable, "-c", CLIENT, address]
        client = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
    finally:
        host.kill()
    assert "restored 1.0 2.0" in client.stdout and ".index" in client.stdout, client.stderr


STEPS = 10


def go_on(strategy, folder, until):
    """Trains from the newest checkpoint in `folder` to step `until`, saves, and returns weights and moments."""
    config = without_dropout(num_hidden_layers=1)
    model, optimizer = model_and_optimizer(strategy, config, STEPS)
    checkpoints = Checkpoints(folder, 1, model=model, optimizer=optimizer)
    done = silent(checkpoints.restore_newest)
    step = Step(strategy, model, PretrainingObjective(4), optimizer, clip_norm=0.5)
    batches = [pretraining_batch(config, batch=8, seed=number) for number in range(done, until)]
    dataset = tf.data.Dataset.from_tensor_slices({name: np.stack([b[name] for b in batches]) for name in batches[0]})
    for number, batch in enumerate(strategy.experimental_distribute_dataset(dataset), done):
        step.train(batch, tf.constant(number, tf.int64))
    checkpoints.save(until)
    return [variable.numpy() for variable in (*model.trainable_variables, *optimizer.variables)]


@pytest.fixture(scope="module")
def never_changed(tmp_path_factory):
    return go_on(tf.distribute.get_strategy(), tmp_path_factory.mktemp("one"), STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["one, then two", "two, then one"])
def test_changing_the_replicas_changes_nothing(never_changed, mirrored_strategy, tmp_path, order):
    strategies = {"one": tf.distribute.get_strategy(), "two": mirrored_strategy}
    for name, until in zip(order.split(", then "), (5, STEPS), strict=True):
        state = go_on(strategies[name], tmp_path, until)
    for received, expected in zip(state, never_changed, strict=True):
        np.testing.assert_allclose(received, expected, rtol=0, atol=1e-5)
