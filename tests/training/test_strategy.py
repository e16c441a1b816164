"""What a strategy's devices are, and what follows from that."""

from types import SimpleNamespace

import pytest
import tensorflow as tf
from pretraining import recipe
from tiny import VOCABULARY

import keras_bert.training.engine as engines
from keras_bert.core.errors import UserError
from keras_bert.tasks.pretraining.engine import pretraining_engine
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.strategy import graphs_as_traced, make_strategy


@pytest.mark.usefixtures("rewritten_graphs")
@pytest.mark.parametrize(("devices", "as_traced"), [(("CPU:0", "CPU:1"), True), (("CPU:0", "GPU:0"), False)])
def test_cpus_run_graphs_as_traced_for_the_length_of_a_run(devices, as_traced):
    """A program that trains goes on with its own setting, even if training fails."""
    strategy = SimpleNamespace(extended=SimpleNamespace(worker_devices=devices))
    options = tf.config.optimizer.get_experimental_options
    with pytest.raises(KeyboardInterrupt), graphs_as_traced(strategy):
        assert options()["disable_meta_optimizer"] is as_traced
        raise KeyboardInterrupt
    assert options()["disable_meta_optimizer"] is False


def test_a_device_that_is_named_twice_is_refused():
    """It used to be a failed assertion in TensorFlow."""
    with pytest.raises(UserError, match="^training.devices: needs each device once. Received: CPU:0, CPU:0.$"):
        make_strategy("auto", ["CPU:0", "CPU:0"])


def test_a_run_within_a_scope_is_refused():
    """Its own strategy would meet the other in a RuntimeError, after the data were read."""
    with pytest.raises(UserError, match="outside of a strategy's scope. Received: auto within that of OneDevice"):
        with tf.distribute.OneDeviceStrategy("CPU:0").scope():
            make_strategy("auto")


@pytest.mark.parametrize("computes_on_gpus", [False, True])
def test_a_gpu_does_without_deterministic_operations(tmp_path, monkeypatch, computes_on_gpus):
    """With them XLA adds the gradients of embeddings one by one: forty times the time of a step."""
    asked = []
    monkeypatch.setattr(engines, "on_gpus", lambda strategy: computes_on_gpus)
    monkeypatch.setattr(tf.config.experimental, "enable_op_determinism", lambda: asked.append("determinism"))
    run, strategy = RunFolder(str(tmp_path)), tf.distribute.OneDeviceStrategy("CPU:0")
    pretraining_engine(recipe("text.txt"), run, strategy, VOCABULARY)
    assert asked == ([] if computes_on_gpus else ["determinism"])


def test_other_devices_go_on_from_a_tpus_checkpoint(tmp_path, monkeypatch):
    """With `jit_compile: auto` they look for its choice, which a TPU does not save; it used to end in a traceback."""
    config, run = recipe("text.txt", **{"training.jit_compile": "auto"}), RunFolder(str(tmp_path))
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    with monkeypatch.context() as patch:
        patch.setattr(tf.distribute, "TPUStrategy", type(strategy))  # Stands in for a TPU.
        engine = pretraining_engine(config, run, strategy, VOCABULARY)
        assert engine.with_compilation(0, lambda: 1 / 0, 1) is engine
        engine.checkpoints.save(3)
    engine = pretraining_engine(config, run, strategy, VOCABULARY)
    assert engine.checkpoints.restore_newest() == 3 and engine.choice.value.numpy() < 0
